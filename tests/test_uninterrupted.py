"""Signals wait while a file is written, and then take effect: neither lost nor in the middle of a row."""

import os
import signal
import threading

import pytest

from spectral_mf.storage.uninterrupted import uninterrupted


class Asked(Exception):
    pass


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request):
    def raise_asked(number, frame):
        raise Asked

    before = signal.signal(request.param, raise_asked)
    yield request.param
    signal.signal(request.param, before)


@uninterrupted()
def write(done, number):
    os.kill(os.getpid(), number)
    done.append("all")


@uninterrupted()
def write_nested(done, number):
    write([], number)
    done.append("all")


@pytest.mark.parametrize("block", [write, write_nested])
def test_the_outermost_block_is_done_before_the_signal_takes_effect(block, number):
    done = []
    with pytest.raises(Asked):
        block(done, number)
    assert done == ["all"]
    with pytest.raises(Asked):
        os.kill(os.getpid(), number)  # the handler is back


def test_an_error_inside_is_not_hidden(number):
    with pytest.raises(ZeroDivisionError), uninterrupted():
        raise ZeroDivisionError
    with pytest.raises(Asked):
        os.kill(os.getpid(), number)


def test_other_threads_leave_signals_alone(number):
    handler = signal.getsignal(number)
    seen = []

    def work():
        with uninterrupted():
            seen.append(signal.getsignal(number))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [handler]


def test_a_process_that_ignores_a_signal_goes_on_ignoring_it():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGTERM)
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)

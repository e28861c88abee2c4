"""Signals wait while a file is written, and then take effect: neither lost nor in the middle of a row."""

import os
import signal
import threading

import pytest

from spectral_mf import FourierDensity, SelfAttention, Trajectory, solve
from spectral_mf.storage.image import RunImage
from spectral_mf.storage.uninterrupted import uninterrupted
from spectral_mf.trajectory import Row


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


def test_ctrl_c_before_the_first_row_reaches_the_caller_and_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Row, "from_snapshot", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve(SelfAttention(5.0), FourierDensity.from_modes({3: 0.01}), 1.0, output=tmp_path / "run.h5")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_in_the_middle_of_a_row_leaves_a_whole_row_and_reaches_the_caller(tmp_path, monkeypatch):
    append = RunImage.append
    rows = []

    def append_slowly(self, row):
        rows.append(row)
        if len(rows) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        append(self, row)

    monkeypatch.setattr(RunImage, "append", append_slowly)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            solve(SelfAttention(5.0), FourierDensity.from_modes({3: 0.01}), 1.0, output=tmp_path / "run.h5")
    finally:
        signal.signal(signal.SIGINT, before)
    kept = Trajectory.load(tmp_path / "run.h5")
    assert len(kept) == 4
    assert not kept.complete
    assert kept.status.startswith("interrupted")

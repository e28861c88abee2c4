"""The same sweep on Dask: a cluster of two workers, and schedulers that are not there."""

import gc
import socket
import subprocess
import sys
import time
import traceback

import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

from spectral_mf import InputError  # noqa: E402
from spectral_mf.solvers import solve_sweep  # noqa: E402
from spectral_mf.sweep.bundles import WorkersLost  # noqa: E402
from spectral_mf.sweep.workers import DaskCluster  # noqa: E402

SECTIONS = {
    "grid": {"model": {"beta": [1.0, float("nan"), 5.0]}, "initial": {"seed": [0, 1, 2, 3]}},
    "initial": {"white_noise": 0.3},
    "time": {"t_end": 4.0, "dt": 0.5},
}


WAITS = {
    "distributed.comm.timeouts.connect": "300s",
    "distributed.comm.timeouts.tcp": "300s",
    "distributed.deploy.lost-worker-timeout": "300s",
}


@pytest.fixture(scope="module", autouse=True)
def patience():
    """A machine that stalls for a while makes no test fail."""
    with dask.config.set(WAITS):
        yield


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as running:
        yield running


def test_two_workers_of_a_cluster_give_the_bytes_of_two_processes(cluster, tmp_path):
    seen = []
    made = solve_sweep(SECTIONS, tmp_path / "dask.h5", scheduler=cluster.scheduler_address, report=seen.append)
    assert made.outcomes == {"complete": 8, "stopped": 0, "failed": 4}
    assert seen[-1].finished == 12
    assert seen[-1].seconds_left == 0.0
    solve_sweep(SECTIONS, tmp_path / "processes.h5", workers=2)
    assert (tmp_path / "dask.h5").read_bytes() == (tmp_path / "processes.h5").read_bytes()
    with distributed.Client(cluster) as client:
        assert len(client.scheduler_info()["workers"]) == 2  # somebody else's cluster goes on


def test_a_cluster_counts_its_own_workers_on_one_thread_each(cluster):
    with DaskCluster(cluster.scheduler_address, 7) as workers, distributed.Client(cluster) as client:
        assert workers.count == 2
        threads = client.run(lambda: __import__("os").environ["OMP_NUM_THREADS"])
        assert set(threads.values()) == {"1"}


def test_a_scheduler_that_does_not_answer_gets_one_sentence_after_the_time_out():
    with socket.socket() as bound:  # a port that nobody listens on
        bound.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(InputError, match=f"no Dask scheduler answers at {address} within 1 s; give one as"):
            DaskCluster(address, 2, timeout=1.0).__enter__()
        assert 0.9 < time.monotonic() - began < 5.0


def clients(error):
    """Clients in the frames that an error went through."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return [frame.f_locals["self"] for frame in frames if isinstance(frame.f_locals.get("self"), distributed.Client)]


@pytest.mark.parametrize("address", ["nonsense", "foo://host:1"])
def test_what_is_no_address_gets_one_sentence(address, tmp_path):
    gc.disable()  # what is left open would be closed at any time, for instance in the middle of another client's start
    try:
        with pytest.raises(InputError, match="scheduler") as raised:
            DaskCluster(address, 2, timeout=1.0).__enter__()
        assert {client.status for client in clients(raised.value.__context__)} == {"closed"}
    finally:
        gc.enable()


def test_a_scheduler_without_workers_gets_one_sentence():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as empty,
        pytest.raises(InputError, match="has no workers; start some with 'dask worker"),
    ):
        DaskCluster(empty.scheduler_address, 2, timeout=1.0).__enter__()


SCHEDULER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()  # until it is killed, or the test ends
"""


@pytest.mark.slow
def test_a_scheduler_that_is_killed_stops_the_sweep_which_goes_on_without_it(tmp_path):
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    scheduler = subprocess.Popen(
        [sys.executable, tmp_path / "scheduler.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    seen = []

    def kill(progress):
        seen.append(progress.finished)
        if progress.finished >= 1 and scheduler.poll() is None:
            scheduler.kill()
            scheduler.wait()

    asked = {**SECTIONS, "grid": {**SECTIONS["grid"], "model": {"beta": [1.0, 5.0]}}}
    with scheduler, dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        address = scheduler.stdout.readline().strip()
        with pytest.raises(WorkersLost, match=f"the scheduler {address} has gone; the finished cases are kept"):
            solve_sweep(asked, tmp_path / "s.h5", scheduler=address, report=kill)
    kept = seen[-1]
    assert 1 <= kept < 8
    again = []
    made = solve_sweep(asked, tmp_path / "s.h5", workers=1, resume=True, report=lambda p: again.append(p.finished))
    assert made.outcomes["complete"] == 8
    assert (again[0], again[-1]) == (kept, 8)


def test_workers_are_not_for_a_foreign_scheduler_to_be_given(tmp_path):
    with pytest.raises(InputError, match="workers = 2 is not for tcp://host:1 to say"):
        solve_sweep(SECTIONS, tmp_path / "s.h5", workers=2, scheduler="tcp://host:1")
    with pytest.raises(InputError, match="workers = 0 is not allowed"):
        solve_sweep(SECTIONS, tmp_path / "s.h5", workers=0)
    assert list(tmp_path.iterdir()) == []

"""Sweeps keep what is finished, whatever happens, and give what single runs give."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import xarray

from spectral_mf import FourierDensity, InputError, SelfAttention, StorageError, Trajectory, diagnostics, solve
from spectral_mf.solvers import solve_sweep
from spectral_mf.solvers.sweep import first_reached, solve_case
from spectral_mf.storage.publishing import Claim
from spectral_mf.sweep import CaseResult, SweepPlan, carry_out, is_sweep, lifeline, read_sweep
from spectral_mf.sweep.bundles import run_cases
from spectral_mf.sweep.carry_out import scattered
from spectral_mf.sweep.journal import Journal, journal_of
from spectral_mf.sweep.results import bytes_of_case
from spectral_mf.sweep.workers import THREADS, Processes, workers_for

TIME = {"t_end": 6.0, "dt": 0.25}


def sections(**grid):
    """A sweep that takes about ten milliseconds a case."""
    return {
        "grid": {"model": {"beta": [1.0, 5.0, 7.0]}, "initial": {"seed": [0, 1, 2, 3]}, **grid},
        "initial": {"white_noise": 0.3, "noise_points": 1000},
        "time": TIME,
        "solver": {"rtol": 1e-8},
    }


class Threads:
    """Workers that are threads of this process."""

    def __init__(self, count):
        self.count = count
        self.executor = ThreadPoolExecutor(count)

    def renew(self):
        raise AssertionError("no thread dies")

    def check(self):
        """Nothing: threads do not go away."""

    def __enter__(self):
        self.executor = ThreadPoolExecutor(self.count)
        return self

    def __exit__(self, *_):
        self.executor.shutdown()


@pytest.fixture
def by_a_thread(monkeypatch):
    """What is not about processes does without the time they take to start."""
    module = sys.modules["spectral_mf.sweep.carry_out"]  # the package's name `carry_out` is the function
    monkeypatch.setattr(module, "workers_for", lambda count, scheduler: Threads(1))


def numbered(number, sections):
    """A case that costs nothing: its number, or an error."""
    if number == 3:
        raise ZeroDivisionError("three")
    return CaseResult(number, "complete", "", {"energy": np.array([float(number)])})


def environment(number, sections):
    """A case that looks at the threads of its worker, and kills it if it is told to."""
    if sections["model"]["beta"] == 13.0:
        os.kill(os.getpid(), signal.SIGKILL)
    threads = [int(os.environ[name]) for name in THREADS]
    return CaseResult(number, "complete", "", {"last_time": np.float64(max(threads))})


def counting(number, sections):
    """A case that notes that it is computed, and fails where beta is 5 until it is told that all is well."""
    folder = sections["initial"]["tokens"]
    with open(f"{folder}/computed", "a") as file:
        print(number, file=file)
    if sections["model"]["beta"] == 5.0 and not os.path.exists(f"{folder}/mended"):
        raise MemoryError("no memory\0 today \udcff")
    return CaseResult(number, "complete", "", {"energy": np.array([float(number), 0.0])})


def slow(number, sections):
    """A case that lasts, and says which process computes it."""
    with open(sections["initial"]["tokens"], "a") as file:
        print(os.getpid(), file=file, flush=True)
    time.sleep(120)


def test_a_sweep_holds_what_single_runs_give(tmp_path):
    made = solve_sweep(sections(model={"beta": [1.0, 5.0, float("nan"), 7.0]}), tmp_path / "s.h5", workers=2)
    assert made.outcomes == {"complete": 12, "stopped": 0, "failed": 4}
    assert list(made.messages) == ["beta = nan is not allowed; give a number from 0 to 1e+06."]
    assert read_sweep(tmp_path / "s.h5") == made
    assert [path.name for path in tmp_path.iterdir()] == ["s.h5"]
    with xarray.open_dataset(tmp_path / "s.h5", engine="h5netcdf") as ds:
        assert ds["moment_real"].dims == ("beta", "seed", "time", "mode")
        assert (ds["outcome"].values == "failed").tolist() == [[False] * 4, [False] * 4, [True] * 4, [False] * 4]
        here = ds.sel(beta=5.0, seed=2)
        model = SelfAttention(beta=5.0)
        run = solve(model, FourierDensity.white_noise(0.3, 1000, 2), ds["time"].values, rtol=1e-8)
        np.testing.assert_array_equal(here["moment_real"].values, run.moments[:, :33].real)
        np.testing.assert_array_equal(here["moment_imag"].values, run.moments[:, :33].imag)
        np.testing.assert_array_equal(here["energy"].values, run.energy)
        history = diagnostics.clusters(run)
        np.testing.assert_array_equal(here["n_clusters"].values, history.counts)
        assert here["k_max"] == 3  # published: the dominant mode at beta = 5
        assert ds["k_max"].sel(beta=7.0, seed=0) == 4
        assert here["last_time"] == 6.0
        assert np.isnan(ds["energy"].values[2]).all()


def test_exit_and_formation_times_are_those_of_the_run(tmp_path, by_a_thread):
    asked = sections(model={"beta": [5.0]}, initial={"modes": ["3:0.01"]})
    asked |= {"initial": {}, "time": {"t_end": 12.0, "dt": 0.25}}
    solve_sweep(asked, tmp_path / "s.h5", workers=1)
    run = solve(SelfAttention(beta=5.0), FourierDensity.from_modes({3: 0.01}), np.linspace(0.0, 12.0, 1201))
    size = np.abs(run.moments[:, 3])
    with h5py.File(tmp_path / "s.h5") as file:
        # A row of the fine run is 0.01 apart; between rows the size is not quite exponential, which is less.
        assert file["exit_time"][0, 0] == pytest.approx(run.t[size >= 0.1][0], abs=0.015)
        assert file["exit_time"][0, 0] == pytest.approx(np.log(10.0) / 0.6826783336167, abs=0.05)
        formed = diagnostics.clusters(run).lifetime(3).formed
        assert file["formation_time"][0, 0] == pytest.approx(formed, abs=0.05)
        assert file["n_clusters"][0, 0, -1] == 3
        assert file["modes"].asstr()[:].tolist() == ["3:0.01"]


def test_models_without_rates_or_energies_leave_them_out():
    """General matrices: modes about the uniform density do not grow each by itself."""
    head = {"query_key": [[1.0, 0.2], [0.2, -0.5]], "value": [[1.0, 0.5], [0.0, 1.0]], "beta": 5.0}
    asked = sections(initial={"seed": [1]}) | {"model": {"type": "MultiHeadAttention", "heads": [head]}}
    asked["grid"].pop("model")
    made = solve_case(0, SweepPlan.from_sections(asked).case(0))
    assert made.outcome == "complete"
    assert made.values["k_max"] == -1
    assert np.isnan(made.values["energy"]).all()
    assert np.isfinite(made.values["moment_real"]).all()


def test_blocks_of_cases_go_where_they_belong(tmp_path, by_a_thread):
    """More than a chunk, whose side does not divide that of the grid."""
    grid = {"model": {"beta": [1.0, 2.0]}, "initial": {"seed": list(range(4)), "noise_points": list(range(64, 73))}}
    asked = sections() | {"grid": grid, "time": {"t_end": 1.0, "dt": 1.0 / 511}}  # 141 kB a case: 7 of 72 a chunk
    plan = SweepPlan.from_sections(asked)
    place = tmp_path / "s.h5"
    journal = Journal.create(journal_of(place), plan.identity)
    for number in range(72):
        moments = np.full((512, 33), float(number))
        journal.append([CaseResult(number, "complete", f"case {number}", {"moment_real": moments})])
    journal.close()
    carry_out(plan, place, numbered, workers=1, resume=True)
    with h5py.File(place) as file:
        assert file["moment_real"].chunks == (1, 1, 7, 512, 33)
        expected = np.broadcast_to(np.arange(72.0).reshape(2, 4, 9, 1, 1), (2, 4, 9, 512, 33))
        np.testing.assert_array_equal(file["moment_real"][:], expected)
        assert file["message"].asstr()[1, 3, 7] == "case 70"


def test_first_reached_is_exact_for_exponential_growth():
    t = np.array([0.0, 1.0, 3.0, 4.0])
    assert first_reached(t, 0.01 * np.exp(0.9 * t), 0.1) == pytest.approx(np.log(10.0) / 0.9, rel=1e-14, abs=0.0)
    assert first_reached(t, [0.5, 0.0, 0.0, 0.0], 0.1) == 0.0
    assert first_reached(t, [0.0, 0.2, 0.3, 0.3], 0.1) == 1.0
    assert np.isnan(first_reached(t, [0.0, 0.01, 0.02, 0.03], 0.1))


def test_a_run_that_stops_early_keeps_its_rows(tmp_path, by_a_thread):
    asked = sections(model={"beta": [5.0]}, initial={"modes": ["3:0.01"]})
    asked |= {"initial": {}, "time": {"t_end": 20.0, "dt": 1.0}}
    asked["solver"] = {"method": "spectral", "max_modes": 256}
    made = solve_sweep(asked, tmp_path / "s.h5", workers=1)
    assert made.outcomes["stopped"] == 1
    with h5py.File(tmp_path / "s.h5") as file:
        last = float(file["last_time"][0, 0])
        known = np.isfinite(file["energy"][0, 0])
        assert 4.0 <= last <= 12.0
        assert known.tolist() == (file["time"][:] <= last).tolist()
        assert (file["n_clusters"][0, 0] == -1).tolist() == (~known).tolist()


def test_eight_threads_give_what_one_gives():
    plan = SweepPlan.from_sections(
        {
            "grid": {"model": {"beta": [1.0, 5.0, 30.0, 200.0]}, "initial": {"uniform_tokens": [2000, 5000]}},
            "initial": {"seed": 1},
            "time": {"t_end": 3.0, "dt": 1.0},
        }
    )
    serial = [solve_case(number, plan.case(number)).to_bytes() for number in range(plan.n_cases)]
    together = [r for results in run_cases(solve_case, range(8), plan.case, Threads(8)) for r in results]
    assert [r.to_bytes() for r in sorted(together, key=lambda r: r.number)] == serial


def test_a_case_that_raises_is_recorded_and_stops_no_other():
    results = [r for bundle in run_cases(numbered, range(500), lambda n: {}, Threads(2)) for r in bundle]
    assert sorted(r.number for r in results) == list(range(500))
    assert [(r.number, r.message) for r in results if r.outcome == "failed"] == [(3, "ZeroDivisionError: three")]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 60, 1000, 4181, 4182])
def test_every_stretch_of_cases_is_spread_over_the_grid(n):
    order = list(scattered(n))
    assert sorted(order) == list(range(n))
    for start in range(0, n - 19, 50):
        part = np.sort(order[start : start + 20])
        assert np.diff(np.append(part, part[0] + n)).max() < 2.7 * n / 20  # as multiples of the golden ratio are


def test_cheap_cases_travel_together():
    bundles = list(run_cases(numbered, range(5000), lambda n: {}, Threads(2)))
    assert len(bundles) < 100
    assert max(map(len, bundles)) <= 1250  # a quarter of all at most: both workers have work to the end


def test_a_case_that_kills_its_worker_is_the_only_one_lost(tmp_path):
    plan = SweepPlan.from_sections(sections(model={"beta": [1.0, 13.0, 5.0]}, initial={"seed": [0]}))
    made = carry_out(plan, tmp_path / "s.h5", environment, workers=2)
    assert made.outcomes == {"complete": 2, "stopped": 0, "failed": 1}
    with h5py.File(tmp_path / "s.h5") as file:
        assert file["outcome"].asstr()[:, 0].tolist() == ["complete", "failed", "complete"]
        assert "the worker that computed it died" in file["message"].asstr()[1, 0]
        assert file["last_time"][[0, 2], 0].tolist() == [1.0, 1.0]  # threads of every library in a worker


def test_the_environment_of_this_process_stays_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    plan = SweepPlan.from_sections(sections(model={"beta": [1.0]}, initial={"seed": [0]}))
    carry_out(plan, tmp_path / "s.h5", environment, workers=1)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in os.environ


SCRIPT = """
import sys
from spectral_mf.solvers import solve_sweep
if __name__ == "__main__":
    solve_sweep(sys.argv[1], sys.argv[2], workers=2, resume=True, report=lambda p: print(p.finished, flush=True))
"""


def start(tmp_path, output, n):
    """A process that computes the sweep, killed when n cases are finished (or never)."""
    (tmp_path / "sweep.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "sweep.py", tmp_path / "plan.toml", output]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if n is not None and int(line) >= n:
            process.send_signal(signal.SIGKILL)
            break
    process.stdout.close()
    assert process.stderr.read() == ""  # not even from the process that cleans up after a kill
    process.stderr.close()
    return process.wait()


@pytest.mark.slow
def test_a_sweep_killed_twice_and_resumed_is_the_same_byte_for_byte(tmp_path):
    (tmp_path / "plan.toml").write_text(
        "[grid]\nmodel.beta = [1.0, nan, 5.0, 7.0]\ninitial.seed = { start = 0, stop = 9, count = 10 }\n"
        "[initial]\nwhite_noise = 0.3\n[time]\nt_end = 6.0\ndt = 0.25\n[solver]\nrtol = 1e-8\n"
    )
    straight, killed = tmp_path / "straight.h5", tmp_path / "killed.h5"
    assert start(tmp_path, straight, None) == 0
    kept = []
    for n in (4, 20):
        assert start(tmp_path, killed, n) == -signal.SIGKILL
        assert not killed.exists()
        journal = Journal(journal_of(killed))
        kept.append(len(journal.finished))
        journal.close()
    assert 4 <= kept[0] < 20 <= kept[1] < 40
    assert start(tmp_path, killed, None) == 0
    assert killed.read_bytes() == straight.read_bytes()
    assert not journal_of(killed).exists()


def test_resuming_computes_only_what_is_missing(tmp_path):
    plan = SweepPlan.from_sections(sections())
    place = tmp_path / "s.h5"
    journal = Journal.create(journal_of(place), plan.identity)
    journal.append([CaseResult(number, "complete", "", {"last_time": np.float64(-1.0)}) for number in (0, 7)])
    journal.close()
    seen = []
    made = carry_out(plan, place, environment, workers=1, resume=True, report=seen.append)
    assert made.outcomes["complete"] == 12
    assert (seen[0].finished, seen[-1].finished, seen[-1].total) == (2, 12, 12)
    with h5py.File(place) as file:
        assert (file["last_time"][:].ravel() == -1.0).nonzero()[0].tolist() == [0, 7]
    before = place.read_bytes()
    carry_out(plan, place, environment, workers=1, resume=True, report=seen.append)  # nothing is left to do
    assert place.read_bytes() == before
    assert seen[-1].finished == 12


def counted_plan(tmp_path):
    grid = {"model": {"beta": [1.0, 5.0, 7.0], "diffusion": [0.0, 0.1, 0.2, 0.3]}}
    initial = {"tokens": str(tmp_path)}
    return SweepPlan.from_sections({"grid": grid, "initial": initial, "time": {"t_end": 1.0, "dt": 1.0}})


def computed(tmp_path):
    """Numbers of the cases that were computed since it was asked last."""
    numbers = sorted(int(line) for line in (tmp_path / "computed").read_text().split())
    (tmp_path / "computed").unlink()
    return numbers


def test_resuming_tries_failed_cases_again_in_a_journal_and_in_a_finished_file(tmp_path, by_a_thread):
    plan, place = counted_plan(tmp_path), tmp_path / "s.h5"

    def stop_late(progress):
        if progress.failed == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(plan, place, counting, workers=1, report=stop_late)
    assert set(computed(tmp_path)) >= {4, 5, 6, 7}
    made = carry_out(plan, place, counting, workers=1, resume=True)
    assert {4, 5, 6, 7} <= set(computed(tmp_path)) <= set(range(4, 12))
    assert made.outcomes == {"complete": 8, "stopped": 0, "failed": 4}
    assert list(made.messages) == ["MemoryError: no memory\\0 today \\udcff"]  # in words that HDF5 can hold
    failing = place.read_bytes()
    assert carry_out(plan, place, counting, workers=1, resume=True) == made  # the finished file
    assert computed(tmp_path) == [4, 5, 6, 7]
    assert place.read_bytes() == failing
    (tmp_path / "mended").touch()
    made = carry_out(plan, place, counting, workers=1, resume=True)
    assert computed(tmp_path) == [4, 5, 6, 7]
    assert made.outcomes["complete"] == 12
    assert not journal_of(place).exists()
    carry_out(plan, tmp_path / "straight.h5", counting, workers=1)
    assert place.read_bytes() == (tmp_path / "straight.h5").read_bytes()


def test_a_second_try_that_is_cut_off_leaves_the_finished_file_and_goes_on(tmp_path, by_a_thread):
    plan, place = counted_plan(tmp_path), tmp_path / "s.h5"
    carry_out(plan, place, counting, workers=1)
    failing = place.read_bytes()
    computed(tmp_path)

    def stop(progress):
        raise KeyboardInterrupt

    (tmp_path / "mended").touch()
    with pytest.raises(KeyboardInterrupt):
        carry_out(plan, place, counting, workers=1, resume=True, report=stop)
    assert place.read_bytes() == failing
    carry_out(plan, place, counting, workers=1, resume=True)
    assert computed(tmp_path) == [4, 5, 6, 7]
    assert read_sweep(place).outcomes["complete"] == 12


def test_resume_and_overwrite_exclude_each_other(tmp_path):
    with pytest.raises(InputError, match="resume keeps the finished cases and overwrite drops them"):
        solve_sweep(sections(), tmp_path / "s.h5", resume=True, overwrite=True)


@pytest.mark.slow
def test_workers_end_when_the_sweep_is_killed(tmp_path):
    script = tmp_path / "lasting.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_sweep import sections, slow\nfrom spectral_mf.sweep import SweepPlan, carry_out\n"
        "if __name__ == '__main__':\n"
        "    asked = {**sections(), 'initial': {'tokens': sys.argv[2]}, 'grid': {'model': {'beta': [1.0, 2.0]}}}\n"
        "    carry_out(SweepPlan.from_sections(asked), sys.argv[3], slow, workers=2)\n"
    )
    here = os.path.dirname(os.path.abspath(__file__))
    pids = tmp_path / "pids"
    process = subprocess.Popen([sys.executable, script, here, pids, tmp_path / "s.h5"])
    deadline = time.monotonic() + 60.0
    while not (pids.exists() and len(pids.read_text().split()) == 2):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    left = deque(int(pid) for pid in pids.read_text().split())
    while left and time.monotonic() < deadline:
        try:
            os.kill(left[0], 0)
            time.sleep(0.05)
        except ProcessLookupError:
            left.popleft()
    assert not left


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's lists of children")
def test_ctrl_c_while_workers_start_is_said_without_a_traceback(tmp_path):
    """A terminal sends it to all processes of the sweep, which have not got to ignore it yet."""
    (tmp_path / "plan.toml").write_text(
        "[grid]\nmodel.beta = [1, 5]\n[initial]\nmodes = { 3 = 0.01 }\n[time]\nt_end = 1\n"
    )
    main = "import signal, sys; from spectral_mf.cli import main; "
    main += "signal.signal(signal.SIGINT, signal.default_int_handler); "  # a job in the background is deaf to it
    command = [sys.executable, "-c", main + "sys.exit(main())", "sweep", "plan.toml", "--workers", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    deadline = time.monotonic() + 60.0
    while len(Path(children).read_text().split()) < 3:  # two workers and the process that cleans up
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    nothing, interrupted = process.communicate(timeout=60.0)[1].splitlines()
    again = "'spectral-mf sweep plan.toml --output plan.h5' begins anew."
    assert nothing == f"No case was finished yet, so nothing is kept; {again}"
    assert interrupted == "Interrupted."
    assert process.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


def test_a_worker_that_is_killed_as_it_starts_gets_a_second_chance():
    killed = []

    def kill_the_first():
        deadline = time.monotonic() + 60.0
        while not (children := multiprocessing.active_children()) and time.monotonic() < deadline:
            time.sleep(0.001)
        for child in children[:1]:
            child.kill()
            killed.append(child.pid)

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    with Processes(1) as workers:
        killer.join()
        assert len(killed) == 1
        assert workers.executor.submit(abs, -3).result(timeout=60.0) == 3
    assert not multiprocessing.active_children()


def test_a_worker_ends_at_once_while_it_computes_and_else_when_it_had_time_to_send(monkeypatch):
    monkeypatch.setattr(lifeline, "GRACE", 0.3)

    class Ended(BaseException):
        """In place of the end of the process."""

    def end(code):
        raise Ended

    monkeypatch.setattr(os, "_exit", end)

    def seconds():
        reader, writer = multiprocessing.Pipe(duplex=False)
        writer.close()
        began = time.monotonic()
        with pytest.raises(Ended):
            lifeline._end_with(reader)
        return time.monotonic() - began

    with lifeline.computing():
        assert seconds() < 0.2
    assert 0.3 <= seconds() < 2.0


@pytest.mark.parametrize("count", [17, 1000])
def test_more_workers_than_cores_can_serve_are_refused(count, monkeypatch):
    monkeypatch.setattr("spectral_mf.sweep.workers.available_cores", lambda: 2)
    with pytest.raises(
        InputError, match=f"workers = {count} is not allowed; give at most 16, as each keeps a core busy"
    ):
        workers_for(count, None)
    assert workers_for(16, None).count == 16


def test_workers_are_no_more_than_cases(tmp_path, monkeypatch):
    hired = Threads(8)
    monkeypatch.setattr(sys.modules["spectral_mf.sweep.carry_out"], "workers_for", lambda count, scheduler: hired)
    carry_out(counted_plan(tmp_path), tmp_path / "s.h5", counting)
    assert hired.count == 8
    (tmp_path / "mended").touch()
    carry_out(counted_plan(tmp_path), tmp_path / "s.h5", counting, resume=True)
    assert hired.count == 4  # those that had failed


def test_room_for_journal_and_file_is_asked_for_before_anything_is_computed(tmp_path, monkeypatch, by_a_thread):
    plan = counted_plan(tmp_path)
    case = bytes_of_case(2, 32)
    assert case == 2 * (33 * 16 + 8 + 4) + 8 + 4 + 8 + 8 + 8
    free = [24 * case - 1]
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=free[0]))
    with pytest.raises(
        StorageError, match=r"12 cases of 2 rows and 33 modes need 0.0268 MB in .* where 0.0268 MB are free"
    ):
        carry_out(plan, tmp_path / "s.h5", counting)
    assert list(tmp_path.iterdir()) == []
    free[0] += 1
    carry_out(plan, tmp_path / "s.h5", counting)


def test_a_full_disk_keeps_what_is_finished(tmp_path, monkeypatch):
    """The write is cut in the middle of a record, as a full disk cuts it; the next try does not write it again."""
    journal = Journal.create(tmp_path / "s.h5.cases", "{}")
    journal.append([CaseResult(0, "complete", "", {"energy": np.arange(3.0)})])
    whole = (tmp_path / "s.h5.cases").read_bytes()
    file = journal._file

    class Full:
        def write(self, content):
            if len(content) < 50:
                raise OSError(28, "No space left on device")
            return file.write(content[:20])

        def __getattr__(self, name):
            return getattr(file, name)

    journal._file = Full()
    with pytest.raises(StorageError, match=r"no case can be added to .*\(No space left on device\); make room"):
        journal.append([CaseResult(1, "complete", "", {"energy": np.arange(3.0)})])
    journal.close()
    assert (tmp_path / "s.h5.cases").read_bytes()[: len(whole)] == whole
    again = Journal(tmp_path / "s.h5.cases").go_on()
    assert set(again.finished) == {0}
    again.close()
    assert (tmp_path / "s.h5.cases").read_bytes() == whole


def test_a_journal_that_cannot_be_read_gets_one_sentence(tmp_path):
    (tmp_path / "s.h5.cases").mkdir()
    with pytest.raises(StorageError, match=r"s\.h5\.cases cannot be read \(Is a directory\); mend its permissions"):
        solve_sweep(sections(), tmp_path / "s.h5")


def test_a_torn_record_is_cut_off(tmp_path):
    path = tmp_path / "s.h5.cases"
    journal = Journal.create(path, "{}")
    journal.append([CaseResult(0, "failed", "why", {})])
    whole = path.stat().st_size
    journal.append([CaseResult(1, "complete", "", {"energy": np.arange(3.0)})])
    journal.close()
    content = path.read_bytes()
    for end in range(whole, len(content)):
        path.write_bytes(content[:end])
        torn = Journal(path).go_on()
        assert torn.finished == {0}
        torn.append([CaseResult(2, "complete", "", {"energy": np.arange(2.0)})])
        torn.close()
        again = Journal(path)
        assert again.finished == {0, 2}
        assert again.read(2).values["energy"].tolist() == [0.0, 1.0]
        assert (again.read(0).message, again.failed) == ("why", 1)
        again.close()


def test_a_changed_byte_ends_the_journal_and_the_last_record_of_a_case_counts(tmp_path):
    path = tmp_path / "s.h5.cases"
    journal = Journal.create(path, "{}")
    journal.append([CaseResult(0, "failed", "why", {})])
    journal.append([CaseResult(0, "complete", "", {"energy": np.arange(3.0)})])
    whole = path.stat().st_size
    journal.append([CaseResult(1, "complete", "", {"energy": np.arange(3.0)})])
    assert (set(journal.finished), journal.failed) == ({0, 1}, 0)
    journal.close()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    again = Journal(path).go_on()
    assert (set(again.finished), again.failed) == ({0}, 0)
    assert again.read(0).outcome == "complete"
    again.close()
    assert path.stat().st_size == whole


@pytest.mark.parametrize(
    ("content", "words"), [(b"something else", "is not a journal"), (b"spectral_mf sweep journal 1\n", "is damaged")]
)
def test_what_is_no_journal_is_refused(tmp_path, content, words):
    (tmp_path / "s.h5.cases").write_bytes(content)
    with pytest.raises(StorageError, match=words):
        Journal(tmp_path / "s.h5.cases")


def test_two_sweeps_do_not_write_one_file(tmp_path):
    claim = Claim(tmp_path / "s.h5")
    try:
        with pytest.raises(StorageError, match="another run is writing"):
            solve_sweep(sections(), tmp_path / "s.h5")
    finally:
        claim.release()


def test_another_sweep_is_neither_resumed_nor_replaced(tmp_path):
    place = tmp_path / "s.h5"
    plan = SweepPlan.from_sections(sections())
    journal = Journal.create(journal_of(place), plan.identity)
    journal.append([CaseResult(0, "complete", "", {})])
    journal.close()
    with pytest.raises(
        StorageError, match=r"holds 1 finished case of an earlier sweep; pass resume=True .* or pass overwrite=True"
    ):
        solve_sweep(sections(), place)
    with pytest.raises(StorageError, match=r"cases of another sweep \(the grid differs\)"):
        solve_sweep(sections(model={"beta": [2.0]}), place, resume=True)
    with pytest.raises(StorageError, match=r"cases of another sweep \(\[time\] differs\)"):
        solve_sweep({**sections(), "time": {"t_end": 1.0}}, place, resume=True)
    one = SweepPlan.from_sections(sections(model={"beta": [2.0]}, initial={"seed": [0]}))
    carry_out(one, place, environment, workers=1, overwrite=True)
    with pytest.raises(StorageError, match="exists; choose another name"):
        solve_sweep(sections(), place)
    with pytest.raises(StorageError, match=r"holds another sweep \(the grid differs\)"):
        solve_sweep(sections(), place, resume=True)
    with pytest.raises(StorageError, match="holds a sweep, not a run"):
        Trajectory.load(place)


def test_a_run_is_not_resumed_as_a_sweep(tmp_path):
    solve(SelfAttention(beta=1.0), FourierDensity.uniform(), 1.0, output=tmp_path / "run.h5")
    assert not is_sweep(tmp_path / "run.h5")
    with pytest.raises(StorageError, match="is not the file of a sweep"):
        solve_sweep(sections(), tmp_path / "run.h5", resume=True)
    with pytest.raises(StorageError, match="holds no sweep"):
        read_sweep(tmp_path / "run.h5")


def test_an_interrupted_sweep_ends_its_workers_at_once_and_keeps_what_is_finished(tmp_path):
    began = []

    def interrupt(progress):
        if progress.finished >= 2:
            began.append(time.monotonic())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_sweep(sections(), tmp_path / "s.h5", workers=2, report=interrupt)
    assert time.monotonic() - began[0] < 5.0
    assert not [thread for thread in threading.enumerate() if "Executor" in type(thread).__name__]
    journal = Journal(journal_of(tmp_path / "s.h5"))
    assert len(journal.finished) >= 2
    journal.close()

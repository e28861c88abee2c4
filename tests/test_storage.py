"""Run files: what is in them, what is refused, and that nothing written is ever lost."""

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention, StorageError, Trajectory, resume, solve
from spectral_mf.storage import RunFile, export, load_run, read_info, rescue, save_run, to_xarray
from spectral_mf.trajectory import Row, RunInfo, Snapshot, StepState

MODEL = SelfAttention(5.0)
START = {2: 0.003, 3: 0.01, 4: 0.002j}


def run(t_end=3.0, **options):
    return solve(MODEL, FourierDensity.from_modes(START), t_end, **options)


def row(t, measure=None):
    snapshot = Snapshot(t, measure or FourierDensity.from_modes(START), "spectral", 64, step=StepState(0.1, 0.5))
    return Row.from_snapshot(snapshot, MODEL, 64, 256)


def python(code, *arguments, **options):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.h5"
    return path, run(output=path, provenance={"kind": "modes", "seed": 7})


def test_round_trip_is_bitwise_and_outlives_the_file(tmp_path):
    path = tmp_path / "run.h5"
    before = run(output=path)
    after = Trajectory.load(path)
    path.unlink()
    for name in ("t", "moments", "cells", "energy", "mass", "energy_rate_residual", "remainder", "n_modes", "method"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        assert getattr(after, name).dtype == getattr(before, name).dtype
    for i in (0, 50, 100):
        np.testing.assert_array_equal(after.measure(i).to_vector(), before.measure(i).to_vector())
        assert after.rows[i].snapshot.step == before.rows[i].snapshot.step or i == 0
    assert after.model == MODEL
    assert dict(after.configuration) == dict(before.configuration)
    assert after.complete
    assert after.status == "complete"


def test_layout(stored):
    path, trajectory = stored
    with h5py.File(path) as file:
        n = file["theta"].shape[0]
        np.testing.assert_array_equal(file["theta"][:], 2 * np.pi * np.arange(n) / n)
        bounds = file["theta_bounds"][:]
        np.testing.assert_allclose(bounds[1:, 0], bounds[:-1, 1], rtol=0, atol=1e-15)
        assert file["density"].attrs["cell_methods"] == "theta: mean"
        np.testing.assert_allclose(file["density"][:].sum(axis=1) * 2 * np.pi / n, 1.0, atol=1e-14)
        assert (file["mass"][:] == 1.0).all()
        assert file["density"].chunks[1] == n  # chunks span whole rows
        assert file["density"].compression == "gzip"
        assert file.attrs["seed"] == 7
        assert file.attrs["complete"] == 1
        assert json.loads(file.attrs["model"])["beta"] == 5.0
        assert json.loads(file.attrs["configuration"])["rtol"] == 1e-10
        assert "numpy" in json.loads(file.attrs["library_versions"])

        kinds = []

        def look(name, item):
            if isinstance(item, h5py.Dataset):
                kinds.append(item.dtype)
                if not name.startswith("bnds"):
                    assert item.attrs["long_name"], name
                if "/" not in name and name not in ("bnds",):
                    assert item.attrs["units"], name
            for value in item.attrs.values():
                assert not isinstance(value, (bool, np.bool_))

        file.visititems(look)
        for kind in kinds:
            assert kind.fields is None  # no compound type
            assert kind.kind in "fiO"
            assert kind.kind != "f" or kind in (np.dtype("<f8"), np.dtype(">f4"))
    np.testing.assert_array_equal(trajectory.theta, 2 * np.pi * np.arange(n) / n)


def test_xarray_reads_the_file_without_us(stored):
    xarray = pytest.importorskip("xarray")
    path, trajectory = stored
    with xarray.open_dataset(path, engine="h5netcdf") as fields:
        assert fields["density"].dims == ("time", "theta")
        assert fields["moment_real"].dims == ("time", "mode")
        np.testing.assert_array_equal(fields["time"], trajectory.t)
        np.testing.assert_array_equal(fields["density"], trajectory.cells)
        np.testing.assert_array_equal(fields["moment_real"] + 1j * fields["moment_imag"], trajectory.moments)
        assert list(fields["method"].values) == list(trajectory.method)
        assert fields["density"].attrs["units"] == "rad-1"
        assert to_xarray(trajectory).identical(fields.load())


def test_resume_gives_the_same_bits_as_one_run(tmp_path, stored):
    _, whole = stored
    path = tmp_path / "part.h5"
    solve(MODEL, FourierDensity.from_modes(START), whole.t[:41], output=path)
    longer = resume(path, 3.0)
    np.testing.assert_array_equal(longer.t, whole.t)
    np.testing.assert_array_equal(longer.moments, whole.moments)
    np.testing.assert_array_equal(longer.measure(100).to_vector(), whole.measure(100).to_vector())
    again = load_run(path)
    np.testing.assert_array_equal(again.moments, whole.moments)
    assert again.complete
    assert len(again.configuration["resumed"]) == 1
    resume(path, 3.1)
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    lines = [f"{time} spectral_mf run {what}" for what in ("started", r"resumed at t = 1\.2", "resumed at t = 3")]
    assert re.fullmatch("\n".join(lines), read_info(path).attributes["history"])
    with pytest.raises(InputError, match="complete"):
        resume(path)
    with pytest.raises(InputError, match="reached t = 3"):
        resume(path, 2.0)


def test_a_stopped_run_keeps_its_rows_in_the_file_and_on_the_exception(tmp_path):
    from spectral_mf import ResolutionExhausted

    path = tmp_path / "run.h5"
    with pytest.raises(ResolutionExhausted) as stop:
        run(20.0, output=path, method="spectral", max_modes=256)
    kept = load_run(path)
    assert not kept.complete
    assert "too sharp" in kept.status
    np.testing.assert_array_equal(kept.moments, stop.value.trajectory.moments)
    assert kept.t[-1] <= stop.value.time < kept.t[-1] + 0.2


def test_ctrl_c_keeps_the_rows_and_goes_on_to_the_caller(tmp_path):
    path = tmp_path / "run.h5"

    def interrupt(t, n_modes, method):
        if t > 1.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(output=path, progress=interrupt)
    kept = load_run(path)
    assert not kept.complete
    assert "interrupted" in kept.status
    assert 1.4 < kept.t[-1] <= 1.5
    np.testing.assert_array_equal(resume(path).moments, run().moments)


def test_existing_files_are_not_overwritten_unless_told(tmp_path):
    path = tmp_path / "run.h5"
    path.write_bytes(b"precious")
    with pytest.raises(StorageError, match=r"exists; choose another name"):
        run(output=path)
    assert path.read_bytes() == b"precious"
    run(1.0, output=path, overwrite=True)
    assert load_run(path).complete


def test_bad_input_begins_no_file(tmp_path):
    path = tmp_path / "run.h5"
    with pytest.raises(InputError):
        solve(MODEL, Atoms([0.0, 1.0]), 1.0, method="spectral", output=path)
    with pytest.raises(InputError):
        run(output=path, rtol=5.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/run.h5", "does not exist"),
        ("file/run.h5", "is not a folder"),
        ("folder", "is a folder"),
    ],
)
def test_places_that_cannot_hold_a_file(tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=message):
        run(output=tmp_path / name)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a file system nobody can write to")
def test_a_read_only_folder():
    with pytest.raises(StorageError, match="cannot be written"):
        run(output="/proc/run.h5")


def test_names_with_spaces_accents_and_greek_relative_to_home_and_after_chdir(tmp_path, monkeypatch):
    folder = tmp_path / "out dir"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run(0.5, output=Path("β=5 résultats.h5"))
    assert load_run("β=5 résultats.h5").complete
    monkeypatch.setenv("HOME", str(tmp_path))
    run(0.5, output="~/at home.h5")
    assert load_run("~/at home.h5").complete

    def move(t, n_modes, method):
        monkeypatch.chdir(tmp_path)

    run(0.5, output="here.h5", progress=move)
    assert load_run(folder / "here.h5").complete


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        (b"", "not an HDF5 file|cannot be opened"),
        (b"nonsense" * 100, "not an HDF5 file"),
    ],
)
def test_files_that_are_no_run(tmp_path, content, message):
    path = tmp_path / "run.h5"
    if content is not None:
        path.write_bytes(content)
    for read in (load_run, read_info, resume):
        with pytest.raises(StorageError, match=message):
            read(path)


def test_truncated_damaged_foreign_and_newer_files(tmp_path, stored):
    whole = stored[0].read_bytes()
    path = tmp_path / "run.h5"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StorageError, match="truncated"):
        load_run(path)
    path.write_bytes(whole)
    with h5py.File(path, "r+") as file:
        del file["energy"]
    with pytest.raises(StorageError, match="damaged"):
        load_run(path)
    path.write_bytes(whole)
    with h5py.File(path, "r+") as file:
        file.attrs["spectral_mf_format"] = 99
    with pytest.raises(StorageError, match="newer"):
        load_run(path)
    path.unlink()
    with h5py.File(path, "w") as file:
        file["x"] = 1.0
    with pytest.raises(StorageError, match="another program"):
        load_run(path)
    with pytest.raises(StorageError, match="is not a file"):
        load_run(tmp_path)


def test_many_atoms_long_provenance_and_many_times(tmp_path):
    tokens = Atoms.sample_uniform(20000, seed=1)
    times = np.linspace(0.0, 1.0, 30001)
    info = RunInfo(
        MODEL,
        {"times": times.tolist(), "initial": {"angles": tokens.angles.tolist(), "Ünï": None, "inf": float("inf")}},
        64,
        256,
    )
    file = RunFile.create(tmp_path / "run.h5", info)
    file.append(row(0.0, tokens))
    file.close(complete=False, status="stopped")
    again = load_run(tmp_path / "run.h5")
    np.testing.assert_array_equal(again.measure(0).to_vector(), tokens.to_vector())
    assert again.configuration["times"] == times.tolist()
    assert again.configuration["initial"] == info.configuration["initial"]


def test_a_run_that_was_taken_up_a_thousand_times(tmp_path):
    entry = {"at": "2030-01-01T00:00:00Z", "max_modes": {"from": 10**9, "to": 10**9}}
    configuration = {"times": [0.0], "resumed": [{"t": 0.001 * i, **entry} for i in range(1, 1001)]}
    path = save_run(Trajectory(RunInfo(MODEL, configuration, 64, 256, True, "complete"), [row(0.0)]), tmp_path / "a.h5")
    lines = read_info(path).attributes["history"].splitlines()
    assert lines[0] == "spectral_mf run started"
    assert "resumed at t = 1, max_modes 1000000000 to 1000000000" in lines[-1]
    assert len(load_run(path).configuration["resumed"]) == 1000


def test_two_runs_with_one_name_started_together(tmp_path):
    info = RunInfo(MODEL, {"times": [0.0]}, 64, 256)
    first = RunFile.create(tmp_path / "run.h5", info)
    with pytest.raises(StorageError, match="another run is writing"):
        RunFile.create(tmp_path / "run.h5", info, overwrite=True)
    first.append(row(0.0))
    first.close(complete=True, status="complete")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.h5"]
    second = RunFile.create(tmp_path / "run.h5", info, overwrite=True)
    second.abandon()


SLOW_WRITER = """
    import sys, time
    from spectral_mf import FourierDensity, SelfAttention, solve
    def slowly(t, n_modes, method):
        time.sleep(0.03)
    print("started", flush=True)
    solve(SelfAttention(5.0), FourierDensity.from_modes({2: 0.003, 3: 0.01, 4: 0.002j}), 3.0, output=sys.argv[1],
          overwrite=True, progress=slowly)
"""


def test_sigkill_at_any_moment_leaves_a_readable_file_that_can_be_resumed(tmp_path):
    path = tmp_path / "run.h5"
    whole = run()
    rng = np.random.default_rng(4)
    reached = []
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SLOW_WRITER), str(path)], stdout=subprocess.PIPE
        )
        assert writer.stdout.readline() == b"started\n"
        while not path.exists():
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 2.0))
        writer.kill()
        writer.wait()
        writer.stdout.close()
        kept = load_run(path)
        assert not kept.complete
        assert kept.status == "running"
        np.testing.assert_array_equal(kept.moments, whole.moments[: len(kept)])
        reached.append(len(kept))
        again = resume(path)
        np.testing.assert_array_equal(again.moments, whole.moments)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["run.h5"]  # what the dead run left is gone
        path.unlink()
    assert max(reached) > 5


def test_a_full_disk_damages_nothing_and_loses_nothing(tmp_path):
    # a limit on file size stands for a full disk: writing fails with an OSError in the middle of a file
    result = python(
        """
        import resource, signal, sys
        import numpy as np
        from spectral_mf import FourierDensity, SelfAttention, StorageError, solve
        from spectral_mf.storage import load_run, rescue
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        path = sys.argv[1]
        import spectral_mf.storage.publishing as publishing
        publishing.SHORTEST_PAUSE = publishing.PAUSE_PER_EFFORT = 0.0
        try:
            solve(SelfAttention(5.0), FourierDensity.from_modes({2: 0.003, 3: 0.01, 4: 0.002j}), 3.0, output=path)
        except StorageError as error:
            print(error)
            kept, computed = load_run(path), error.trajectory
            assert 1 <= len(kept) < len(computed), (len(kept), len(computed))
            np.testing.assert_array_equal(kept.moments, computed.moments[: len(kept)])
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            place = rescue(computed, path)
            np.testing.assert_array_equal(load_run(place).moments, computed.moments)
            place.unlink(), place.parent.rmdir()
        else:
            print("not full")
        """,
        tmp_path / "run.h5",
    )
    assert result.returncode == 0, result.stderr
    assert "no space is left" in result.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.h5"]


def test_two_processes_write_the_same_numbers(tmp_path):
    code = """
        import sys
        from spectral_mf import FourierDensity, SelfAttention, solve
        start = FourierDensity.white_noise(0.02, 10000, 5)
        solve(SelfAttention(5.0), start, 4.0, output=sys.argv[1])
    """
    for name, threads in (("a.h5", "1"), ("b.h5", "4")):
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        assert python(code, tmp_path / name, env=environment).returncode == 0
    with h5py.File(tmp_path / "a.h5") as a, h5py.File(tmp_path / "b.h5") as b:
        for name in ("time", "density", "moment_real", "moment_imag", "energy", "restart/state"):
            assert a[name][:].tobytes() == b[name][:].tobytes(), name


def test_ten_thousand_rows_take_seconds_and_little_space(tmp_path):
    # 1.3 times the raw numbers at most; time is bounded only against a hundredfold mistake
    rows = [row(float(t)) for t in range(100)]
    info = RunInfo(MODEL, {"times": []}, 64, 256)
    start = time.monotonic()
    file = RunFile.create(tmp_path / "run.h5", info)
    for i in range(10_000):
        file.append(Row(Snapshot(float(i), rows[i % 100].snapshot.measure, "spectral", 64), *_rest(rows[i % 100])))
    file.close(complete=True, status="complete")
    assert time.monotonic() - start < 30
    assert (tmp_path / "run.h5").stat().st_size < 1.3 * 10_000 * 8 * (256 + 2 * 65 + 10)


def _rest(r):
    return r.moments, r.cells, r.energy, r.mass


def test_summary_without_fields(stored):
    path, trajectory = stored
    summary = read_info(path)
    np.testing.assert_array_equal(summary.t, trajectory.t)
    assert summary.model == MODEL
    assert summary.info.complete
    assert summary.attributes["status"] == "complete"
    assert list(summary.method) == ["spectral"] * 101 or summary.method[-1] == "spectral"


def test_export(tmp_path, stored):
    import csv

    _, trajectory = stored
    with np.load(export(trajectory, tmp_path / "run.npz")) as archive:
        np.testing.assert_array_equal(archive["moments"], trajectory.moments)
    with export(trajectory, tmp_path / "run.csv").open(newline="") as text:
        lines = list(csv.DictReader(text))
    assert float(lines[-1]["t"]) == trajectory.t[-1]
    assert complex(float(lines[-1]["re_c3"]), float(lines[-1]["im_c3"])) == trajectory.moments[-1, 3]
    np.testing.assert_array_equal(load_run(export(trajectory, tmp_path / "run.nc")).moments, trajectory.moments)
    with pytest.raises(InputError, match=r"\.nc, \.csv, \.npz"):
        export(trajectory, tmp_path / "run.txt")
    with pytest.raises(StorageError, match="exists"):
        export(trajectory, tmp_path / "run.nc")


def test_save_and_rescue(tmp_path, stored):
    _, trajectory = stored
    assert save_run(trajectory, tmp_path / "copy.h5") == tmp_path / "copy.h5"
    np.testing.assert_array_equal(load_run(tmp_path / "copy.h5").cells, trajectory.cells)
    place = rescue(trajectory, "run.h5")
    np.testing.assert_array_equal(load_run(place).cells, trajectory.cells)
    place.unlink()
    place.parent.rmdir()


def test_a_reader_that_holds_the_file_sees_the_old_one_to_the_end(tmp_path):
    path = tmp_path / "run.h5"
    run(0.5, output=path)
    with h5py.File(path) as reader:
        before = reader["time"][:]
        run(1.0, output=path, overwrite=True)
        np.testing.assert_array_equal(reader["time"][:], before)
    assert load_run(path).t[-1] == 1.0

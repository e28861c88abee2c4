"""The command line from end to end, on small runs: what is written, said, and refused."""

import json
import re
import signal
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import COMMAND, check_refused, process_with_rows

from spectral_mf import Atoms, SelfAttention, StorageError, Trajectory
from spectral_mf.cli.ending import way_on
from spectral_mf.storage import RunFile, read_info
from spectral_mf.trajectory import RunInfo

pytestmark = pytest.mark.usefixtures("empty_folder")

SMALL = ("--beta", "5", "--modes", "3:0.01", "--t-end", "1", "--dt", "0.1")


# Results


def test_a_run_ends_with_its_path_and_a_summary_on_stdout(command):
    code, shown, told = command("solve", *SMALL)
    assert code == 0
    path, summary = shown.splitlines()
    assert path == "run.h5"
    assert summary.startswith("11 rows, t = 0 to 1, spectral, ")
    assert "from uniform density with c_3 = 0.01" in told
    trajectory = Trajectory.load(path)
    assert trajectory.t.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert trajectory.complete
    growth = abs(trajectory.moments[-1, 3]) / 0.01
    assert growth == pytest.approx(np.exp(0.682678333616747), rel=1e-3)  # linear theory, to the order of |c_3|^2


def test_quiet_is_the_path_and_nothing_else(command):
    assert command("solve", *SMALL, "--quiet", "-o", "quiet.h5") == (0, "quiet.h5\n", "")


def test_tokens_become_a_run_that_knows_where_they_came_from(command, tmp_path):
    np.save(tmp_path / "tokens.npy", np.random.default_rng(1).uniform(0, 2 * np.pi, 10_000))
    code, _, told = command("solve", "--beta", 5, "--tokens", "tokens.npy", "--t-end", 0.5, "--output", "run.h5")
    assert code == 0
    K = SelfAttention(5.0).bandwidth
    assert f"10000 tokens of tokens.npy, smoothed to {K} modes" in told
    trajectory = Trajectory.load("run.h5")
    assert len(trajectory) == 101
    assert trajectory.configuration["initial"]["n_tokens"] == 10_000
    assert trajectory.configuration["initial"]["smooth_modes"] == K
    expected = Atoms.from_file("tokens.npy").moments(K)
    assert np.abs(trajectory.moments[0, : K + 1] - expected).max() < 1e-15


def test_options_and_a_run_file_make_the_same_run(command, tmp_path):
    (tmp_path / "run.toml").write_text(
        '[model]\nbeta = 7\n[initial]\nwhite_noise = 0.1\nseed = 3\n[time]\nt_end = 1\n[solver]\nrtol = "1e-9"\n'
    )
    assert command("solve", "run.toml", "--beta", 5, "--dt", 0.3, "-q")[:2] == (0, "run.h5\n")
    options = ("--beta", 5, "--white-noise", 0.1, "--seed", 3, "--t-end", 1, "--dt", 0.3, "--rtol", 1e-9)
    assert command("solve", *options, "-q", "-o", "b.h5")[0] == 0
    a, b = Trajectory.load("run.h5"), Trajectory.load("b.h5")
    assert np.array_equal(a.moments, b.moments)
    assert a.t.tolist() == [0.0, 0.3, 0.6, 0.9, 1.0]
    assert a.configuration["seed"] == 3
    assert a.configuration["rtol"] == 1e-9


def test_a_run_is_gone_on_with_bit_for_bit(command):
    assert command("solve", *SMALL, "-q")[0] == 0
    code, shown, _ = command("resume", "run.h5", "--t-end", 2)
    assert code == 0
    assert shown.startswith("run.h5\n21 rows, t = 0 to 2, ")
    assert command("solve", *SMALL, "--t-end", 2, "-q", "-o", "straight.h5")[0] == 0
    a, b = Trajectory.load("run.h5"), Trajectory.load("straight.h5")
    assert np.array_equal(a.t, b.t)
    assert np.array_equal(a.moments, b.moments)


def test_info_says_what_was_solved_and_how_to_go_on(command):
    command("solve", *SMALL, "-q")
    code, shown, _ = command("info", "run.h5")
    assert code == 0
    assert shown.startswith("run.h5: complete, 11 rows, t = 0 to 1\n")
    for part in ("SelfAttention(beta=5.0", "c_3 = 0.01", "spectral to t = 1", "rtol 1e-10", "resume run.h5 --t-end"):
        assert part in shown
    answer = json.loads(command("info", "run.h5", "--json")[1])
    assert answer["complete"] is True
    assert answer["rows"] == answer["planned_rows"] == 11
    assert answer["model"]["beta"] == 5.0
    assert answer["t_last"] == answer["t_planned"] == 1.0
    assert answer["configuration"]["initial"]["modes"] == {"3": [0.01, 0.0]}
    assert answer["methods"] == [{"method": "spectral", "t_last": 1.0}]
    assert answer["energy"][0] <= answer["energy"][1]


@pytest.mark.parametrize("suffix", ["csv", "npz", "nc"])
def test_export(command, suffix, tmp_path):
    command("solve", *SMALL, "-q")
    assert command("export", "run.h5", f"out.{suffix}") == (0, f"out.{suffix}\n", "")
    assert (tmp_path / f"out.{suffix}").stat().st_size > 1000
    check_refused(command, "export", "run.h5", f"out.{suffix}", says="choose another name, or add --overwrite to")
    assert command("export", "run.h5", f"out.{suffix}", "--overwrite")[0] == 0


def test_a_file_is_replaced_only_when_asked(command, tmp_path):
    command("solve", *SMALL, "-q")
    before = (tmp_path / "run.h5").read_bytes()
    code, shown, told = command("solve", *SMALL, "-q")
    assert (code, shown) == (2, "")
    assert told == "Error: run.h5 exists; choose another --output, or add --overwrite.\n"
    assert (tmp_path / "run.h5").read_bytes() == before
    assert command("solve", *SMALL, "-q", "--overwrite", "--beta", 7)[0] == 0
    assert Trajectory.load("run.h5").model.beta == 7.0


@pytest.mark.parametrize("name", ["out dir/β=5 résultats.h5", "a b.h5"])
def test_names_with_spaces_and_accents(command, tmp_path, name):
    (tmp_path / "out dir").mkdir()
    assert command("solve", *SMALL, "-q", "-o", name) == (0, f"{name}\n", "")
    assert f"spectral-mf resume '{name}'" in command("info", name)[1]


@pytest.mark.parametrize(
    ("arguments", "picture", "head"),
    [
        ([], "run.png", b"\x89PNG"),
        (["--kind", "density"], "run.density.png", b"\x89PNG"),
        (["--kind", "moments", "-o", "m.pdf"], "m.pdf", b"%PDF"),
        (["--kind", "rates", "-o", "r.svg"], "r.svg", b"<?xml"),
        (["--kind", "energy"], "run.energy.png", b"\x89PNG"),
    ],
)
def test_plot(command, tmp_path, arguments, picture, head):
    command("solve", *SMALL, "-q")
    assert command("plot", "run.h5", *arguments) == (0, f"{picture}\n", "")
    assert (tmp_path / picture).read_bytes().startswith(head)
    assert command("plot", "run.h5", *arguments)[0] == 0  # an old picture is replaced


def test_several_pictures_at_once(command, tmp_path):
    command("solve", *SMALL, "-q")
    asked = ("--kind", "density", "--kind", "overview", "--kind", "density")
    assert command("plot", "run.h5", *asked) == (0, "run.density.png\nrun.png\n", "")
    assert (tmp_path / "run.density.png").read_bytes() != (tmp_path / "run.png").read_bytes()
    check_refused(command, "plot", "run.h5", *asked, "-o", "a.png", says="--output a.png names one picture, --kind 2")
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("kind", "advice"), [("densty", "did you mean density?"), ("tree", "choose one of overview, density, moments")]
)
def test_a_kind_that_is_not_known(command, kind, advice):
    check_refused(command, "plot", "none.h5", "--kind", kind, says=f"--kind = '{kind}' is not known; {advice}")


def test_demo_ends_in_three_clusters_with_a_file_and_a_picture(command, tmp_path):
    code, shown, told = command("demo", "--output-dir", "a/b")
    assert code == 0
    file, picture, summary, following = shown.splitlines()
    assert (file, picture) == ("a/b/demo.h5", "a/b/demo.png")
    assert summary.startswith("161 rows to t = 8 in ")
    assert following == "Next: spectral-mf info a/b/demo.h5"
    assert "from 10000 uniform tokens, seed 0" in told
    trajectory = Trajectory.load(file)
    assert np.abs(trajectory.moments[-1, 1:9]).argmax() + 1 == 3
    assert np.abs(trajectory.moments[-1, 3]) > 0.8
    assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


def test_demo_twice(command):
    assert (
        command("demo", "-q")
        == command("demo", "-q")
        == (0, "spectral-mf-demo/demo.h5\nspectral-mf-demo/demo.png\n", "")
    )


# Bad input


@pytest.mark.parametrize(
    ("replaced", "says"),
    [
        (("--beta", "-1"), "beta = -1 is not allowed"),
        (("--beta", "nan"), "beta = nan is not allowed"),
        (("--normalization", "soft"), "normalization = 'soft' is unknown; choose one of softmax, none, peak"),
        (("--t-end", "0"), "t_end = 0 is not allowed"),
        (("--t-end", "-1"), "t_end = -1 is not allowed"),
        (("--t-end", "inf"), "not finite"),
        (("--dt", "0"), "not positive"),
        (("--modes", "3:0.6"), "negative at theta"),
        (("--modes", "3:2"), "exceeds 1"),
        (("--modes", "0:1"), "mode 0 is not allowed"),
        (("--tokens", "tokens.npy"), "--tokens and --modes exclude each other"),
        (("--method", "magic"), "method = 'magic' is unknown"),
        (("--rtol", "1"), "rtol = 1 is not allowed"),
        (("--max-modes", "1"), "max_modes = 1 is not allowed"),
        (("--symmetry", "2"), "mode 3 is not zero"),
        (("--store-modes", "0"), "store_modes = 0 is not allowed"),
        (("--cells", "1"), " cells = 1 is not allowed"),
        (("--output", "missing/run.h5"), "missing does not exist"),
        (("--output", "."), "is a folder"),
    ],
)
def test_bad_options_are_refused_before_anything_is_computed(command, tmp_path, replaced, says):
    check_refused(command, "solve", *SMALL, *replaced, says=says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (
            ("--modes", "3:0.01", "--method", "characteristics", "--diffusion", "0.1"),
            "use --method spectral, or --diff",
        ),
        (("--uniform-tokens", "10", "--seed", "1"), "or use --method characteristics, which moves them"),
        (("--modes", "3:0.01", "--order", "3"), "order = 3 belongs to --method quasilinear, not to 'auto'"),
        (("--modes", "3:0.01", "--normalization", "none", "--beta", "800"), "use --normalization peak, the same flow"),
    ],
)
def test_advice_names_options_not_arguments(command, options, advice):
    check_refused(command, "solve", "--beta", 5, "--t-end", 1, *options, says=advice)


def test_a_folder_that_is_a_file(command, tmp_path):
    (tmp_path / "file").write_text("")
    check_refused(command, "solve", *SMALL, "--output", "file/run.h5", says="file")


@pytest.mark.parametrize("content", [b"", b"1.0\nnan\n", b"1.0\nhello\n", b"\x00\x01\x02"])
def test_token_files_that_hold_no_angles(command, tmp_path, content):
    (tmp_path / "tokens.txt").write_bytes(content)
    check_refused(command, "solve", "--beta", 5, "--tokens", "tokens.txt", "--t-end", 1, says="tokens.txt")


def test_missing_tokens(command):
    check_refused(command, "solve", "--beta", 5, "--tokens", "none.npy", "--t-end", 1, says="none.npy")


def test_too_few_tokens(command):
    few = ("--uniform-tokens", 10, "--seed", 1)
    check_refused(command, "solve", "--beta", 5, *few, "--t-end", 1, says="10 tokens make no density")


@pytest.mark.parametrize("arguments", [["info"], ["plot"], ["resume"], ["export"]])
def test_files_that_are_no_runs(command, tmp_path, arguments):
    command("solve", *SMALL, "-q")
    whole = (tmp_path / "run.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.h5").write_text("no run")
    with h5py.File("other.h5", "w") as other:
        other["x"] = np.arange(3)
    for name, says in (
        ("cut.h5", "cut.h5 is truncated"),
        ("text.h5", "text.h5 is not an HDF5 file"),
        ("other.h5", "other.h5 is an HDF5 file of another program"),
        ("none.h5", "none.h5 does not exist"),
        (".", "not a file"),
    ):
        more = ["out.csv"] if arguments == ["export"] else []
        check_refused(command, *arguments, name, *more, says=says)


@pytest.mark.parametrize("times", [[], ["--t-end", "0.5"], ["--t-end", "1"], ["--t-end", "nan"]])
def test_there_is_nothing_to_go_on_to(command, tmp_path, times):
    command("solve", *SMALL, "-q")
    before = (tmp_path / "run.h5").read_bytes()
    code, shown, told = command("resume", "run.h5", *times)
    assert (code, shown) == (2, "")
    assert told.startswith("Error: ")
    assert (tmp_path / "run.h5").read_bytes() == before


def test_export_to_an_unknown_format(command):
    command("solve", *SMALL, "-q")
    check_refused(command, "export", "run.h5", "run.mat", says="choose one of .nc, .csv, .npz")


def test_plot_to_an_unknown_format_or_folder(command):
    command("solve", *SMALL, "-q")
    check_refused(command, "plot", "run.h5", "-o", "run.gif", says="choose one of .png")
    check_refused(command, "plot", "run.h5", "-o", "none/run.png", says="none does not exist")


def test_demo_where_no_folder_can_be_made(command, tmp_path):
    (tmp_path / "file").write_text("")
    check_refused(command, "demo", "--output-dir", "file/demo", says="file/demo cannot be made")
    check_refused(command, "demo", "--output-dir", "file", says="file cannot be made")


def test_the_same_in_a_process_of_its_own():
    done = subprocess.run([*COMMAND, "solve", *SMALL, "--beta", "-1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"Error: beta = -1 is not allowed; .*\n", done.stderr)


# Runs that do not reach their end


def test_a_run_that_cannot_go_on_keeps_its_rows_and_says_so(command):
    long = ("--beta", 5, "--modes", "3:0.1", "--t-end", 20, "--method", "spectral", "--max-modes", 256)
    code, shown, told = command("solve", *long)
    assert (code, shown) == (3, "")
    known = read_info("run.h5")
    assert not known.info.complete
    assert 10 < known.t.size < 101
    assert "Stopped early: at t = " in told
    assert "max_modes = 256" in told
    assert f"{known.t.size} rows to t = {known.t[-1]:g} are kept in run.h5; " in told
    assert "'spectral-mf resume run.h5 --max-modes 512' goes on." in told
    assert "Traceback" not in told
    shown = command("info", "run.h5")[1]
    assert shown.startswith(f"run.h5: partial, {known.t.size} rows")
    assert "stopped early: at t = " in shown
    assert "spectral-mf resume run.h5 --max-modes 512\n" in shown


def test_a_run_out_of_modes_goes_on_with_more(command):
    run = ("--beta", 5, "--modes", "3:0.1,2:0.01", "--t-end", 4.2, "--dt", 0.2, "--method", "spectral", "-q")
    assert command("solve", *run, "--max-modes", 128)[0] == 3
    reached = read_info("run.h5").t[-1]
    code, shown, told = command("resume", "run.h5")  # as before is not enough
    assert (code, shown) == (3, "")
    assert "max_modes = 128" in told
    assert read_info("run.h5").t[-1] == reached < 4.2
    check_refused(command, "resume", "run.h5", "--max-modes", "1", says="max_modes = 1 is not allowed")
    assert command("resume", "run.h5", "--max-modes", 2048, "-q")[0] == 0
    assert command("solve", *run, "--max-modes", 2048, "-o", "one.h5")[0] == 0
    resumed, one = Trajectory.load("run.h5"), Trajectory.load("one.h5")
    assert resumed.complete
    np.testing.assert_array_equal(resumed.t, one.t)
    np.testing.assert_array_equal(resumed.moments, one.moments)
    np.testing.assert_array_equal(resumed.cells, one.cells)
    assert resumed.configuration["max_modes"] == 2048
    assert {entry["t"] for entry in resumed.configuration["resumed"]} == {reached}
    last = read_info("run.h5").attributes["history"].splitlines()[-1]
    assert last.endswith(f" spectral_mf run resumed at t = {reached:g}, max_modes 128 to 2048")
    assert "; 20" in command("info", "run.h5")[1]


@pytest.mark.parametrize("method", ["auto", "characteristics", "linear"])
def test_only_the_spectral_method_is_told_to_take_more_modes(method):
    configuration = {"method": method, "max_modes": 256}
    info = RunInfo(SelfAttention(5.0), configuration, 64, 512, False, "stopped early: at t = 1; raise max_modes.")
    assert way_on(Path("run.h5"), info) is None


def test_a_disk_that_fills_up_loses_no_row(command, monkeypatch, tmp_path):
    append = RunFile.append

    def append_until_full(self, row):
        if row.snapshot.t > 0.45:
            raise StorageError("no space is left to write run.h5.")
        append(self, row)

    monkeypatch.setattr(RunFile, "append", append_until_full)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code, _, told = command("solve", *SMALL, "-q")
    assert code == 2
    first, second = told.splitlines()
    assert first == "Error: no space is left to write run.h5."
    place = re.fullmatch(r"What was computed until then \((\d+) rows\) is in (.*)\.", second)
    rescued = Trajectory.load(place[2])
    assert len(rescued) == int(place[1])
    assert rescued.t[-1] >= 0.4


def has_rows():
    try:
        return read_info("run.h5").t.size > 20
    except StorageError:
        return False


LONG = ("--beta", "5", "--white-noise", "0.1", "--seed", "3", "--t-end", "2", "--dt", "0.0004", "--rtol", "1e-13")


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Terminated")]
)
def test_a_signal_keeps_the_rows_and_says_how_to_go_on(number, code, word):
    process = process_with_rows("solve", *LONG, has_rows=has_rows)
    process.send_signal(number)
    shown, told = process.communicate(timeout=60)
    assert process.returncode == code
    assert shown == ""
    known = read_info("run.h5")
    assert not known.info.complete
    assert known.info.status.startswith("interrupted")
    last = told.splitlines()[-1]
    assert last == (
        f"{word}. {known.t.size} rows to t = {known.t[-1]:g} are kept in run.h5; 'spectral-mf resume run.h5' goes on."
    )
    assert "Traceback" not in told
    assert "Exception ignored" not in told


@pytest.mark.slow
def test_an_interrupted_run_ends_as_an_uninterrupted_one(command):
    process = process_with_rows("solve", *LONG, has_rows=has_rows)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert command("resume", "run.h5", "-q")[:2] == (0, "run.h5\n")
    assert command("solve", *LONG, "-q", "-o", "straight.h5")[0] == 0
    a, b = Trajectory.load("run.h5"), Trajectory.load("straight.h5")
    assert a.complete
    assert np.array_equal(a.t, b.t)
    assert np.array_equal(a.moments, b.moments)


def test_a_plan_that_gets_shorter_is_told(command):
    stop = ("--beta", 5, "--modes", "3:0.1", "--t-end", 20, "--method", "spectral", "--max-modes", 256, "-q")
    assert command("solve", *stop)[0] == 3
    code, _, told = command("resume", "run.h5", "--t-end", 5, "--max-modes", 2048)
    assert code == 0
    assert "the plan, to t = 20, is shortened to t = 5; " in told
    assert "plan" not in command("resume", "run.h5", "--t-end", 5.1)[2]


def test_info_tells_a_run_that_goes_on_from_one_that_was_killed(command):
    # As after kill -9: the file says "running", the lock is there, and no process holds it.
    command("solve", *SMALL, "-q")
    known = read_info("run.h5")
    file = RunFile.extend(
        "run.h5", RunInfo(known.model, {**known.info.configuration, "times": [0.0, 1.0, 9.0]}, 64, 512)
    )
    file.publish()
    shown = command("info", "run.h5")[1]
    assert "  status    running\n" in shown
    assert "  to go on  wait: a process is writing this file\n" in shown
    assert json.loads(command("info", "run.h5", "--json")[1])["being_written"] is True
    file.abandon()
    Path(".run.h5.lock").touch()
    shown = command("info", "run.h5")[1]
    assert "  status    stopped without ending, as after a kill or a power cut: no process is writing" in shown
    assert "  to go on  spectral-mf resume run.h5\n" in shown
    assert json.loads(command("info", "run.h5", "--json")[1])["being_written"] is False


def test_one_is_not_plural(command):
    Path("one.txt").write_text("1.0\n")
    run_one = ("--beta", 5, "--tokens", "one.txt", "--method", "characteristics", "--t-end", 1, "-o", "one.h5")
    code, shown, told = command("solve", *run_one)
    assert code == 0
    assert ", atoms, at most 1 atom, " in shown
    assert "from 1 token of one.txt\n" in told
    assert "  in use    1 atom\n" in command("info", "one.h5")[1]
    assert re.search(r"\b1 \w+s\b", shown + told + command("info", "one.h5")[1]) is None

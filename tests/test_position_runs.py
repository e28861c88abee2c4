"""Run files with positions: what the command line computes, stores, shows and refuses."""

import json
import math
import re
import signal

import h5py
import numpy as np
import pytest
import xarray
from command_line import check_refused, process_with_rows
from scipy.integrate import quad

from spectral_mf import (
    FourierDensity,
    InputError,
    PositionalAttention,
    PositionalTrajectory,
    StorageError,
    resume,
    solve_positions,
)
from spectral_mf.config import RunConfig
from spectral_mf.config_positions import PositionsSection
from spectral_mf.models import parameters_of
from spectral_mf.position_theory import influence
from spectral_mf.positional_plots import PICTURES, plot_moments, plot_order
from spectral_mf.positional_start import PositionalStart, Power, Window
from spectral_mf.storage import positional_file, publishing
from spectral_mf.storage.positional import has_positions
from spectral_mf.sweep.plan import SweepPlan

pytestmark = pytest.mark.usefixtures("empty_folder")

RATE = 18.5960703044714  # 9 I_3(5) / 5, of tests/test_theory.py's table
MATRIX = [[0.5, -2.0], [0.7, -0.4]]

SECTIONS = {
    "model": {"type": "PositionalAttention", "beta": 2, "normalization": "none", "decay": 1.0},
    "initial": {"modes": {"1": 0.01}},
    "time": {"t_end": 0.2},
}

CAUSAL = """
[model]
type = "PositionalAttention"
beta = 5
normalization = "none"
order = "causal"
decay = 1

[initial]
modes = "3:{size}"

[positions]
power = {power}

[time]
t_end = {t_end}
dt = {dt}
"""


def causal(folder, *, power=1.0, size=1e-7, t_end=0.08, dt=0.02, more=""):
    """Write a run file of causal data; its path."""
    file = folder / "run.toml"
    file.write_text(CAUSAL.format(size=size, power=power, t_end=t_end, dt=dt) + more, encoding="utf-8")
    return file


# Results

PAIRS = [
    (
        """
        [model]
        type = "PositionalAttention"
        beta = 3.0
        normalization = "softmax"
        order = "causal"
        decay = 2.0
        [positions]
        power = 1.5
        grading = 2
        n_positions = 12
        """,
        PositionalAttention(3.0, "softmax", "causal", 2.0),
        lambda s: FourierDensity.from_modes(
            {k: c * (math.expm1(2.0 * s) / math.expm1(2.0)) ** 1.5 for k, c in ((1, 0.05), (2, 0.02j))}
        ),
        {"grading": 2, "n_positions": 12},
    ),
    (
        """
        [model]
        type = "PositionalAttention"
        beta = 1.5
        normalization = "none"
        order = "full"
        query_key = [[0.5, -2.0], [0.7, -0.4]]
        diffusion = 0.1
        [positions]
        window = [0.4, 0.2]
        """,
        PositionalAttention(1.5, "none", "full", diffusion=0.1, query_key=MATRIX),
        lambda s: FourierDensity.from_modes(
            {k: c * math.exp(-0.5 * ((s - 0.4) / 0.2) ** 2) for k, c in ((1, 0.05), (2, 0.02j))}
        ),
        {},
    ),
    (
        """
        [model]
        type = "PositionalAttention"
        beta = 2.0
        rotary = 3.0
        """,
        PositionalAttention(2.0, rotary=3.0),
        FourierDensity.from_modes({1: 0.05, 2: 0.02j}),
        {},
    ),
]
REST = """
[initial]
modes = { 1 = 0.05, 2 = "0.02j" }
[time]
t_end = 0.3
dt = 0.1
[solver]
rtol = 1e-8
max_modes = 512
[output]
store_modes = 30
path = "out.h5"
"""


@pytest.mark.parametrize(("text", "model", "start", "options"), PAIRS, ids=["power", "window", "rotary"])
def test_a_run_by_the_command_is_that_of_python_bit_for_bit(command, tmp_path, text, model, start, options):
    (tmp_path / "run.toml").write_text(text + REST, encoding="utf-8")
    code, shown, told = command("solve", "run.toml")
    assert code == 0, told
    path, summary = shown.splitlines()
    assert path.endswith("out.h5")
    assert summary.startswith("4 rows, t = 0 to 0.3, spectral, at most ")
    assert "from uniform density with c_1 = 0.05, c_2 = 0+0.02j" in told
    stored = PositionalTrajectory.load("out.h5")
    expected = solve_positions(model, start, [0.0, 0.1, 0.2, 0.3], rtol=1e-8, max_modes=512, n_modes=30, **options)
    assert stored.model == model
    assert stored.complete
    assert stored.grid == expected.grid
    np.testing.assert_array_equal(stored.t, expected.t)
    np.testing.assert_array_equal(stored.n_modes, expected.n_modes)
    assert np.abs(stored.moments[0] - expected.moments[0]).max() < 1e-16
    np.testing.assert_array_equal(stored.moments, expected.moments)
    for key in ("rtol", "max_modes", "symmetry", "times", "n_positions", "grading"):
        assert stored.configuration[key] == expected.configuration[key]


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_causal_data_of_a_run_file_grow_as_theory_says(command, tmp_path, power):
    assert command("solve", causal(tmp_path, power=power), "-q") == (0, "run.h5\n", "")
    stored = PositionalTrajectory.load("run.h5")
    share = np.expm1(stored.positions) / np.expm1(1.0)
    exact = 1e-7 * share**power * np.exp(RATE / (power + 1.0) * stored.t[:, None])
    assert stored.t.tolist() == [0.0, 0.02, 0.04, 0.06, 0.08]
    assert np.abs(stored.moments[:, :, 3] - exact).max() < 1e-9 * exact.max()


def test_a_window_moves_the_last_position_as_theory_says(command, tmp_path):
    """By the integral of the influence over the window, to the order of |c_3|."""
    growth = 3.0
    text = CAUSAL.format(size=1e-7, power=1, t_end=growth / RATE, dt=growth / RATE).replace(
        "power = 1", "window = [0.5, 0.15]\nn_positions = 64"
    )
    (tmp_path / "run.toml").write_text(text + "[solver]\nrtol = 1e-11\n", encoding="utf-8")
    assert command("solve", "run.toml", "-q")[0] == 0
    last = PositionalTrajectory.load("run.h5").at([1.0])[-1, 0, 3]

    def window(s):
        return math.exp(-0.5 * ((s - 0.5) / 0.15) ** 2)

    pieces = ((0.0, 1e-6), (1e-6, 1e-3), (1e-3, 0.1), (0.1, 1.0))
    moved = sum(quad(lambda s: window(s) * influence([s], growth, 1.0)[0], *ends, epsrel=1e-12)[0] for ends in pieces)
    assert 1e7 * last == pytest.approx(window(1.0) + moved, rel=1e-8)


def test_options_replace_what_the_file_says(command, tmp_path):
    file = causal(tmp_path)
    assert command("solve", file, "--beta", 3, "--rtol", 1e-7, "--t-end", 0.04, "-q", "-o", "other.h5")[0] == 0
    stored = PositionalTrajectory.load("other.h5")
    assert (stored.model.beta, stored.configuration["rtol"], stored.t[-1]) == (3.0, 1e-7, 0.04)
    assert stored.configuration["initial"]["profile"] == {"kind": "power", "power": 1.0, "decay": 1.0}
    assert stored.configuration["initial"]["modes"] == {"3": [1e-7, 0.0]}


def test_a_model_by_options_alone_is_the_same_at_all_positions(command):
    options = ("--type", "PositionalAttention", "--beta", 2, "--uniform-tokens", 5000, "--seed", 4, "--t-end", 0.1)
    code, _, told = command("solve", *options)
    assert code == 0
    assert "from 5000 uniform tokens, seed 4, smoothed to " in told
    stored = PositionalTrajectory.load("run.h5")
    assert len(stored) == 101
    assert stored.configuration["seed"] == 4
    assert (np.ptp(stored.moments[0], axis=0) == 0.0).all()


def test_a_file_is_replaced_only_when_asked(command, tmp_path):
    file = causal(tmp_path)
    assert command("solve", file, "-q")[0] == 0
    before = (tmp_path / "run.h5").read_bytes()
    sentence = "Error: run.h5 exists; choose another --output, or add --overwrite.\n"
    assert command("solve", file, "-q") == (2, "", sentence)
    assert (tmp_path / "run.h5").read_bytes() == before
    assert command("solve", file, "-q", "--beta", 4, "--overwrite")[0] == 0
    assert PositionalTrajectory.load("run.h5").model.beta == 4.0


def test_a_file_written_on_the_way_is_that_of_save(tmp_path):
    model, start = PositionalAttention(1.0, rotary=15.0), FourierDensity.from_modes({1: 0.2, 2: 0.05j})
    made = solve_positions(model, start, [0.0, 0.2, 1.0], output=tmp_path / "way.h5")  # takes more nodes on the way
    assert made.grid.n_nodes > 32
    made.save(tmp_path / "end.h5")
    with h5py.File(tmp_path / "way.h5") as way, h5py.File(tmp_path / "end.h5") as end:
        assert dict(way.attrs) == dict(end.attrs)
        assert list(way) == list(end)
        assert all((way[name][()] == end[name][()]).all() for name in way if name != "configuration")
    with xarray.open_dataset(tmp_path / "way.h5", engine="h5netcdf") as data:
        assert data.history.endswith(" spectral_mf run started")
    assert list(tmp_path.glob(".*")) == []  # neither a lock nor a part of a file
    with pytest.raises(StorageError, match="exists"):
        solve_positions(model, start, 1.0, output=tmp_path / "way.h5")


def test_the_example_runs(command, checkout):
    code, _, told = command("solve", checkout / "examples" / "positions.toml", "--t-end", 0.35)
    assert code == 0
    assert "c_3 = 0.001, each c_k times ((e^(1 s) - 1)/(e^1 - 1))^1" in told
    stored = PositionalTrajectory.load("positions.h5")
    growth = abs(stored.at([1.0])[-1, 0, 3]) / 1e-3
    assert growth == pytest.approx(np.exp(RATE / 2.0 * 0.35), rel=2e-3)  # to the order of |c_3|^2


def test_every_key_is_documented(checkout):
    page = (checkout / "docs" / "command-line.md").read_text(encoding="utf-8")
    text = page[page.index("### Positions") : page.index("### Token files")]
    of_the_model = set(parameters_of("PositionalAttention")[0]) - {"beta", "normalization", "diffusion"}
    known = of_the_model | set(PositionsSection.model_fields)
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == known


# What the file shows


def test_info_says_what_was_solved_and_how_to_go_on(command, tmp_path):
    command("solve", causal(tmp_path), "-q")
    code, shown, told = command("info", "run.h5")
    assert (code, told) == (0, "")
    assert shown.startswith("run.h5: complete, 5 rows, t = 0 to 0.08\n")
    for part in (
        "PositionalAttention(beta=5.0",
        "c_3 = 1e-07, each c_k times ((e^(1 s) - 1)/(e^1 - 1))^1",
        "32 nodes, grading 1, ",
        "rtol 1e-10, max_modes 2048",
        "to go on  a run with positions cannot be resumed; solve its run file again to the later time",
    ):
        assert part in shown
    answer = json.loads(command("info", "run.h5", "--json")[1])
    assert answer["complete"] is True
    assert answer["being_written"] is False
    assert answer["rows"] == answer["planned_rows"] == 5
    assert answer["model"]["order"] == "causal"
    assert len(answer["positions"]) == 32
    assert answer["unresolved"] < 1e-12
    assert answer["t_last"] == answer["t_planned"] == 0.08


def test_pictures(command, tmp_path):
    command("solve", causal(tmp_path, size=0.01, t_end=0.3), "-q")
    assert command("plot", "run.h5") == (0, "run.png\n", "")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    kinds = [kind for kind in PICTURES if kind != "overview"]
    asked = [part for kind in kinds for part in ("--kind", kind)]
    assert command("plot", "run.h5", *asked)[1].split() == [f"run.{kind}.png" for kind in kinds]
    check_refused(
        command,
        *("plot", "run.h5", "--kind", "clusters"),
        says="a run with positions has no picture 'clusters'; choose one of overview, density, order, moments, mean.",
    )


def test_a_run_without_positions_has_no_pictures_of_them(command):
    command("solve", "--beta", 5, "--modes", "3:0.01", "--t-end", 1, "-q")
    says = "there is no picture 'order'; choose one of overview, density, moments, rates"
    check_refused(command, "plot", "run.h5", "--kind", "order", says=says)


def test_pictures_show_the_moments_at_all_positions(command, tmp_path):
    command("solve", causal(tmp_path, size=0.01, t_end=0.3), "-q")
    stored = PositionalTrajectory.load("run.h5")
    (mesh,) = plot_order(stored).axes[0].collections
    sizes = np.asarray(mesh.get_array())
    middle = (np.arange(200) + 0.5) / 200
    assert sizes == pytest.approx(np.abs(stored.at(middle)[:, :, 3]).T, rel=1e-12, abs=0.0)
    lines = {line.get_label(): line for line in plot_moments(stored).axes[0].lines}
    assert lines["s = 0.5"].get_ydata() == pytest.approx(np.abs(stored.at([0.5])[:, 0, 3]), rel=1e-12, abs=0.0)
    dashed = [line for line in plot_moments(stored).axes[0].lines if line.get_linestyle() == "--"]
    at_half = 0.01 * np.expm1(0.5) / np.expm1(1.0) * np.exp(RATE / 2.0 * stored.t)
    assert dashed[2].get_ydata() == pytest.approx(at_half, rel=1e-12, abs=0.0)


def test_corner_cases_are_drawn():
    uniform = solve_positions(PositionalAttention(1.0), FourierDensity.uniform(), [0.0], n_positions=1)
    turned = solve_positions(
        PositionalAttention(1.0, rotary=4.0), FourierDensity.von_mises(1.0), [0.0, 1e-4, 1e-3, 0.5]
    )
    for each in (uniform, turned):
        for picture in PICTURES:
            each.plot(picture)
    with pytest.raises(InputError, match="mode 65 is not stored; choose from 1 to 64"):
        plot_order(uniform, k=65)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("resume", "run.h5"),
            "a run with positions cannot be resumed; solve its run file again to the later time, wi",
        ),
        (("resume", "run.h5", "--t-end", "3"), "a run with positions cannot be resumed; solve its run file again"),
        (
            ("export", "run.h5", "out.csv"),
            "holds densities with positions, which Trajectory and export do not have; lo",
        ),
    ],
)
def test_what_files_with_positions_are_refused_for(command, tmp_path, arguments, says):
    command("solve", causal(tmp_path), "-q")
    before = (tmp_path / "run.h5").read_bytes()
    check_refused(command, *arguments, says=says)
    assert (tmp_path / "run.h5").read_bytes() == before


def test_python_does_not_resume_either():
    solve_positions(PositionalAttention(1.0), FourierDensity.uniform(), [0.0, 1.0], output="run.h5")
    with pytest.raises(StorageError, match="holds densities with positions"):
        resume("run.h5", 2.0)


# Runs that do not reach their end


def test_a_run_that_cannot_go_on_keeps_its_rows_and_says_so(command, tmp_path):
    file = causal(
        tmp_path, power=0.0, size=0.1, t_end=2, more="[solver]\nmax_modes = 256\n[output]\nstore_modes = 20\n"
    )
    code, shown, told = command("solve", file)
    assert (code, shown) == (3, "")
    stored = PositionalTrajectory.load("run.h5")
    assert 1 < len(stored) < 101
    assert stored.status.startswith("stopped early: at t = ")
    *_, reason, kept = told.splitlines()
    assert reason.startswith("Stopped early: at t = ")
    assert "max_modes = 256; raise --max-modes, end the run earlier" in reason
    assert kept == f"{len(stored)} rows to t = {stored.t[-1]:g} are kept in run.h5."
    assert command("info", "run.h5")[1].startswith(f"run.h5: partial, {len(stored)} rows, t = 0 to ")
    assert command("plot", "run.h5")[0] == 0


def started(folder):
    """A process that computes rows, once its file holds some."""
    slow = "[solver]\nrtol = 1e-13\n[output]\nstore_modes = 8\n"
    file = causal(folder, power=0.5, size=0.01, t_end=0.3, dt=0.0001, more=slow)

    return process_with_rows(
        "solve",
        file,
        has_rows=lambda: has_positions("run.h5") and len(PositionalTrajectory.load("run.h5")) > 1,
    )


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Terminated")]
)
def test_a_signal_keeps_the_rows(tmp_path, number, code, word):
    process = started(tmp_path)
    process.send_signal(number)
    shown, told = process.communicate(timeout=60)
    assert (process.returncode, shown) == (code, "")
    stored = PositionalTrajectory.load("run.h5")
    assert 1 < len(stored) < 3001
    assert stored.status == f"interrupted by the user after t = {stored.t[-1]:.6g}"
    assert told.splitlines()[-1] == f"{word}. {len(stored)} rows to t = {stored.t[-1]:g} are kept in run.h5."
    assert "Traceback" not in told
    assert list(tmp_path.glob(".*")) == []


def test_a_kill_leaves_what_was_written_until_then(tmp_path, command):
    process = started(tmp_path)
    process.kill()
    process.communicate(timeout=60)
    stored = PositionalTrajectory.load("run.h5")
    assert stored.status == "running"
    assert not stored.complete
    shown = command("info", "run.h5")[1]
    assert "  status    stopped without ending, as after a kill or a power cut: no process is writing" in shown


@pytest.mark.parametrize(
    ("pause", "n_kept", "n_rescued"), [(0.0, 3, 4), (100.0, 1, 5)], ids=["on the way", "at the end"]
)
def test_a_disk_that_fills_up_loses_no_row(command, monkeypatch, tmp_path, pause, n_kept, n_rescued):
    write = positional_file.write_positional

    def write_until_full(rows, place):
        if rows.t[-1] > 0.05:
            raise StorageError("no space is left to write run.h5.")
        write(rows, place)

    monkeypatch.setattr(positional_file, "write_positional", write_until_full)
    monkeypatch.setattr(publishing, "SHORTEST_PAUSE", pause)
    monkeypatch.setattr(publishing, "PAUSE_PER_EFFORT", 0.0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code, _, told = command("solve", causal(tmp_path), "-q")
    assert code == 2
    first, second = told.splitlines()
    assert first == "Error: no space is left to write run.h5."
    kept = f"What was computed until then ({n_rescued} rows) is in "
    assert second.startswith(kept)
    rescued = PositionalTrajectory.load(second.removeprefix(kept)[:-1])
    assert rescued.t.tolist() == [0.0, 0.02, 0.04, 0.06, 0.08][:n_rescued]
    assert len(PositionalTrajectory.load("run.h5")) == n_kept
    assert list(tmp_path.glob(".*")) == []


# Bad input


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"positions": {"window": [1.5, 0.1]}}, "position 1.5 is not allowed; positions are numbers from 0 to 1"),
        ({"positions": {"window": [-0.1, 0.1]}}, "position -0.1 is not allowed; positions are numbers from 0 to 1"),
        ({"positions": {"window": [0.5, 0]}}, "width = 0 is not allowed; give a finite number >= 0.005."),
        ({"positions": {"window": [0.5, 1e-4]}}, "width = 0.0001 is not allowed; give a finite number >= 0.005."),
        ({"positions": {"window": 0.5}}, "positions.window = 0.5 is not a centre and a width; write them like [0.3, "),
        ({"positions": {"window": [0.5, "a"]}}, "positions.window = [0.5, 'a'] is not a centre and a width"),
        ({"positions": {"power": -1}}, "power = -1 is not allowed; give a number from 0 to 100."),
        ({"positions": {"power": "nan"}}, "power = nan is not allowed; give a number from 0 to 100."),
        ({"positions": {"power": "x"}}, "positions.power = 'x' is not a number."),
        (
            {"positions": {"power": 1, "window": [0.5, 0.1]}},
            "positions.power and positions.window exclude each other; leave out one of them.",
        ),
        ({"positions": {"n_positons": 8}}, "positions.n_positons is not known; did you mean n_positions?"),
        ({"positions": {"grading": 1.5}}, "positions.grading = 1.5 is not an integer."),
        ({"positions": {"decay": 1.0}}, "positions.decay is not known; decay belongs in the section [model]."),
        ({"positions": 3}, "positions = 3 is not a section; write its keys below a line [positions]."),
        ({"position": {"power": 1}}, "section [position] is not known; did you mean [positions]?"),
        ({"positions": {"n_positions": 0}}, "n_positions = 0 is not allowed"),
        (
            {"positions": {"window": [0.5, 0.005]}},
            "the initial densities depend so sharply on the position that 256 no",
        ),
        ({"solver": {"method": "linear"}}, "method = 'linear' says nothing about a run with positions; leave it out."),
        ({"solver": {"order": 3}}, "order = 3 says nothing about a run with positions; leave it out."),
        ({"solver": {"symmetry": 3}}, "symmetry = 3 says nothing about a run with positions; leave it out."),
        ({"output": {"cells": 64}}, "cells = 64 says nothing about a run with positions; leave it out."),
        ({"solver": {"rtol": 1}}, "rtol = 1 is not allowed; give a number from 1e-13 to 0.01."),
        ({"solver": {"max_modes": 2}}, "max_modes = 2 is not allowed; give an integer of at least 64."),
        ({"output": {"store_modes": 0}}, "store_modes = 0 is not allowed; give an integer of at least 1."),
        ({"initial": {"modes": {"1": 0.7}}}, "the density is negative at theta = 3.142"),
        ({"time": {"t_end": -1}}, "t_end = -1 is not allowed"),
        ({"common_noise": {"planar": 0.5, "n_steps": 8}}, "section [common_noise] does not go with the model Position"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(command, tmp_path, sections, sentence):
    merged = {
        name: {**SECTIONS.get(name, {}), **part} if isinstance(part, dict) else part for name, part in sections.items()
    }
    refuse(command, tmp_path, {**SECTIONS, **merged}, sentence)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            {"beta": 2, "rotary": 3},
            "model.rotary is no parameter of SelfAttention, which has beta, normalization, diffusion; leave it out, or "
            "give another type: PositionalAttention.",
        ),
        ({"beta": 2, "query_key": MATRIX}, "model.query_key is no parameter of SelfAttention, which has beta, normal"),
        (
            {"type": "PositionalAttention"},
            "the inverse temperature is missing; give --beta, or beta in the section",
        ),
        (
            {"type": "PositionalAttenton", "beta": 2},
            "model type = 'PositionalAttenton' is unknown; did you mean Posi",
        ),
        ({"type": "PositionalAttention", "beta": 2, "dcay": 1}, "model.dcay is not known; did you mean decay?"),
        ({"type": "PositionalAttention", "beta": 2, "decay": "x"}, "model.decay = 'x' is not a number."),
        (
            {"type": "PositionalAttention", "beta": 2, "order": 3},
            "model.order = 3 is not allowed: input should be",
        ),
        (
            {"type": "PositionalAttention", "beta": 2, "order": "acausal"},
            "order = 'acausal' is unknown; choose one",
        ),
        ({"type": "PositionalAttention", "beta": 2, "decay": 501}, "decay = 501 is not allowed; give a number from 0 "),
        ({"type": "PositionalAttention", "beta": 2, "strength": 1}, "model.strength is no parameter of PositionalAtte"),
        (
            {"type": "PositionalAttention", "beta": 2, "query_key": [1, 2]},
            "query_key = [1, 2] is not a 2x2 matrix",
        ),
        ({"type": "PositionalAttention", "beta": 2, "query_key": "I"}, "query_key = 'I' is not a 2x2 matrix of finite"),
        (
            {"type": "PositionalAttention", "beta": 2, "query_key": np.eye(3).tolist()},
            "query_key = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] is not a 2x2 matrix of finite numbers",
        ),
        (
            {"type": "PositionalAttention", "beta": 2, "query_key": MATRIX, "rotary": 1},
            "rotary = 1 cannot go with a query_key",
        ),
    ],
)
def test_what_is_wrong_with_the_model_is_said_in_one_sentence(command, tmp_path, model, sentence):
    refuse(command, tmp_path, {**SECTIONS, "model": model}, sentence)


def test_positions_belong_to_a_model_that_has_them(command, tmp_path):
    sections = {**SECTIONS, "model": {"beta": 2}, "positions": {"power": 1}}
    sentence = "section [positions] belongs to the model PositionalAttention, not to SelfAttention; leave it out."
    refuse(command, tmp_path, sections, sentence)


def refuse(command, folder, sections, sentence):
    """Assert that a run file of these sections is refused, and nothing is computed."""
    lines = []
    for name, section in sections.items():
        if isinstance(section, dict):
            lines.append(f"[{name}]")
            lines += [f"{key} = {toml(value)}" for key, value in section.items()]
        else:
            lines.insert(0, f"{name} = {section}")
    (folder / "run.toml").write_text("\n".join(lines), encoding="utf-8")
    code, shown, told = command("solve", "run.toml")
    assert (code, shown) == (2, "")
    assert told.startswith(f"Error: {sentence}")
    assert told.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["run.toml"]


def toml(value):
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def test_other_commands_say_that_they_have_no_positions(command, tmp_path):
    file = causal(tmp_path)
    check_refused(
        command, "linear", file, says="model type = 'PositionalAttention' has positions, which only 'spectral-"
    )
    with pytest.raises(InputError, match=r"model\.type = 'PositionalAttention' has no place in a sweep file; solve"):
        SweepPlan.from_sections({**SECTIONS, "grid": {"model": {"decay": [0.0, 1.0]}}})
    with pytest.raises(InputError, match="has positions, which only"):
        RunConfig.from_sections(SECTIONS).model()


# The start


def test_profiles_are_factors_from_0_to_1():
    s = np.linspace(0.0, 1.0, 101)
    for power, decay in ((0.0, 1.0), (1.0 / 3.0, 0.0), (2.5, 500.0), (1.0, 1e-9)):
        values = np.array([Power(power, decay)(x) for x in s])
        assert values[-1] == 1.0
        assert (np.diff(values) >= 0.0).all()
        assert values[0] == (power == 0.0)
    assert Power(1.5, 1e-9)(0.3) == pytest.approx(0.3**1.5, rel=1e-8)  # e^(λs) - 1 = λs (1 + λs/2 + ..)
    assert Window(0.3, 0.1)(0.3) == 1.0
    assert Window(0.3, 0.1)(0.5) == pytest.approx(np.exp(-2.0), rel=1e-14, abs=0.0)


def test_a_start_at_a_position_is_that_share_of_the_perturbation():
    start = PositionalStart(FourierDensity.from_modes({1: 0.2, 3: 0.1j}), Window(0.3, 0.1))
    assert start(0.5).moments(3) == pytest.approx(
        [1.0, 0.2 * np.exp(-2.0), 0.0, 0.1j * np.exp(-2.0)], rel=1e-14, abs=0.0
    )

"""Run files with common noise: what the command line computes, stores, shows and refuses."""

import re
import tomllib

import numpy as np
import pytest

from spectral_mf import (
    BrownianPath,
    FourierDensity,
    InputError,
    SelfAttention,
    Trajectory,
    VectorFields,
    resume,
    solve_common_noise,
)
from spectral_mf.config import RunConfig
from spectral_mf.config_common_noise import CommonNoiseSection
from spectral_mf.sweep.plan import SweepPlan

pytestmark = pytest.mark.usefixtures("empty_folder")

RUN = """
[model]
beta = 3.0
diffusion = {diffusion}

[initial]
modes = {{ 1 = 0.2, 2 = "0.05j" }}

[time]
t_end = 1.0
dt = 0.125

[solver]
rtol = 1e-9

[output]
store_modes = 70
cells = 128

[common_noise]
{noise}
"""
PLANAR = "planar = 0.5\nn_steps = 16\nseed = 7"
START = FourierDensity.from_modes({1: 0.2, 2: 0.05j})
SECTIONS = {"model": {"beta": 3}, "initial": {"modes": {"1": 0.2}}, "time": {"t_end": 2}}


@pytest.fixture
def write(tmp_path):
    """Write a run file; its name."""

    def make(noise=PLANAR, diffusion=0.0, name="run.toml"):
        (tmp_path / name).write_text(RUN.format(noise=noise, diffusion=diffusion))
        return name

    return make


def section(**keys):
    return RunConfig.from_sections({**SECTIONS, "common_noise": keys}).common_noise


# ------------------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("diffusion", [0.0, 0.1])
def test_the_command_line_solves_as_python_does(command, write, diffusion):
    code, shown, told = command("solve", write(diffusion=diffusion))
    assert code == 0
    path, summary = shown.splitlines()
    assert path == "run.h5"
    assert summary.startswith("9 rows, t = 0 to 1, spectral, at most ")
    assert "with noise common to all tokens: 2 fields, path of 16 steps to t = 1, seed 7\n" in told
    found = Trajectory.load("run.h5")
    expected = solve_common_noise(
        SelfAttention(3.0, diffusion=diffusion),
        START,
        VectorFields.planar(0.5),
        BrownianPath.draw(2, 1.0, 16, 7),
        np.linspace(0.0, 1.0, 9),
        rtol=1e-9,
        n_modes=70,
        n_cells=128,
    )
    assert found.complete
    np.testing.assert_array_equal(found.t, expected.t)
    np.testing.assert_array_equal(found.moments, expected.moments)
    np.testing.assert_array_equal(found.cells, expected.cells)
    assert np.abs(found.moments[-1, 1] - found.moments[0, 1]) > 0.05


def test_options_replace_keys_and_tokens_become_a_density(command, write, tmp_path):
    np.save(tmp_path / "tokens.npy", START.sample(4000, seed=2).angles)
    options = ("--tokens", "tokens.npy", "--method", "characteristics", "--smooth-modes", 8, "--t-end", 0.25)
    assert command("solve", write(), *options, "-q", "-o", "tokens.h5") == (0, "tokens.h5\n", "")
    found = Trajectory.load("tokens.h5")
    assert found.t[-1] == 0.25
    assert set(found.method) == {"characteristics"}
    assert found.configuration["initial"]["smooth_modes"] == 8
    assert found.configuration["path"]["t_end"] == 0.25  # that of the run


def test_a_seed_that_is_not_given_is_drawn_shown_and_stored(command, write):
    name = write("planar = 0.5\nn_steps = 4")
    told = command("solve", name)[2]
    first = BrownianPath.from_dict(Trajectory.load("run.h5").configuration["path"])
    assert f"path of 4 steps to t = 1, {first.origin}\n" in told
    seed = int(first.origin.removeprefix("seed "))
    assert (first.increments == BrownianPath.draw(2, 1.0, 4, seed).increments).all()
    assert command("solve", name, "--overwrite", "-q")[0] == 0
    assert BrownianPath.from_dict(Trajectory.load("run.h5").configuration["path"]).origin != first.origin


def test_fields_that_are_named_act_together():
    made = section(coefficients=[["0.1", 0, "0.2+0.3j"], [0.0, 0.5, 0]], planar="0.4", rotation=0.7, n_steps=4)
    theta = np.linspace(0.0, 6.0, 13)
    expected = [
        np.full(13, 0.7),
        -0.4 * np.sin(theta),
        0.4 * np.cos(theta),
        0.1 + 0.4 * np.cos(2 * theta) - 0.6 * np.sin(2 * theta),
        np.cos(theta),
    ]
    assert made.fields().at(theta) == pytest.approx(np.array(expected), abs=1e-14)


def test_the_path_may_be_longer_than_the_run():
    path = section(planar=0.5, n_steps=8, t_end="3", seed=1).path(2, 2.0)
    assert (path.increments == BrownianPath.draw(2, 3.0, 8, 1).increments).all()
    assert path.t_end == 3.0
    assert section(planar=0.5, n_steps=8).path(2, 2.0).t_end == 2.0


def test_pictures_are_drawn_of_it(command, write, tmp_path):
    assert command("solve", write(), "-q")[0] == 0
    kinds = ("overview", "density", "moments", "energy")
    asked = [part for kind in kinds for part in ("--kind", kind)]
    code, shown, _ = command("plot", "run.h5", *asked)
    assert code == 0
    assert all((tmp_path / name).stat().st_size > 5000 for name in shown.split())


def test_the_example_runs_and_goes_on(command, checkout):
    example = checkout / "examples" / "common_noise.toml"
    code, shown, _ = command("solve", example, "--t-end", 5)
    assert code == 0
    assert shown.startswith("common_noise.h5\n101 rows, t = 0 to 5, spectral then characteristics, ")
    assert command("resume", "common_noise.h5", "--t-end", 8, "-q")[0] == 0
    found = Trajectory.load("common_noise.h5")
    assert found.t[-1] == 8.0
    assert np.abs(found.moments[[0, -1], 1]) == pytest.approx([0.02, 1.0], abs=0.02)  # from nearly uniform to a cluster


def test_every_key_is_documented(checkout):
    page = (checkout / "docs" / "command-line.md").read_text(encoding="utf-8")
    text = page[page.index("### Common noise") : page.index("### Positions")]
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(CommonNoiseSection.model_fields)


def test_the_run_file_of_the_page_is_the_python_of_the_page(checkout):
    page = (checkout / "docs" / "common-noise.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    made = RunConfig.from_sections(tomllib.loads(text))
    assert made.model() == SelfAttention(4.0)
    assert made.times() == pytest.approx(np.linspace(0.0, 4.0, 41), abs=1e-15)
    assert (made.initial_measure().measure.moments(3) == START.moments(3)).all()
    path = made.common_noise.path(2, 4.0)
    assert (path.increments == BrownianPath.draw(2, t_end=4.0, n_steps=256, seed=1).increments).all()
    for line in (
        "beta=4.0",
        "{1: 0.2, 2: 0.05j}",
        "planar(0.5)",
        "draw(2, t_end=4.0, n_steps=256, seed=1)",
        "4.0, 41)",
    ):
        assert line in page


# ------------------------------------------------------------------------------------------------------------ going on


def same_rows(one, other):
    np.testing.assert_array_equal(one.t, other.t)
    np.testing.assert_array_equal(one.method, other.method)
    np.testing.assert_array_equal(one.n_modes, other.n_modes)
    np.testing.assert_array_equal(one.moments, other.moments)
    np.testing.assert_array_equal(one.cells, other.cells)


@pytest.mark.parametrize("diffusion", [0.0, 0.1])
@pytest.mark.parametrize(
    "noise", [PLANAR, "rotation = 1.0\nn_steps = 7\nseed = 2", "planar = 2\nn_steps = 9\nseed = 2"]
)
def test_a_run_is_gone_on_with_bit_for_bit(command, write, noise, diffusion):
    name = write(noise + "\nt_end = 1.0", diffusion)
    assert command("solve", name, "--t-end", 0.5, "-q", "-o", "parts.h5")[0] == 0
    assert "spectral-mf resume parts.h5 --t-end TIME\n" in command("info", "parts.h5")[1]
    code, shown, _ = command("resume", "parts.h5", "--t-end", 1)
    assert code == 0
    assert shown.startswith("parts.h5\n9 rows, t = 0 to 1, ")
    assert command("solve", name, "-q", "-o", "one.h5")[0] == 0
    same_rows(Trajectory.load("parts.h5"), Trajectory.load("one.h5"))


BROAD, SHARP = FourierDensity.von_mises(40.0), FourierDensity(0.95 ** np.arange(401))


@pytest.mark.parametrize(
    ("start", "method", "t_end", "first", "last"),
    [
        (BROAD, "auto", 4.0, 1.5, "spectral"),
        (BROAD, "auto", 4.0, 3.0, "characteristics"),
        (BROAD, "characteristics", 4.0, 1.5, "characteristics"),
        (SHARP, "auto", 0.4, 0.3, "spectral"),  # how far Fourier modes are tried depends on the modes of the start
    ],
)
def test_a_run_goes_on_through_a_collapse_bit_for_bit(tmp_path, start, method, t_end, first, last):
    """Rows lie within the path's steps too, and the parts meet before or after Fourier modes are left behind."""
    given = (SelfAttention(4.0), start, VectorFields.planar(0.5), BrownianPath.draw(2, 4.0, 60, 2))
    times = np.linspace(0.0, t_end, 9)
    whole = solve_common_noise(*given, times, method=method, rtol=1e-8)
    file = tmp_path / "parts.h5"
    part = solve_common_noise(*given, times[times <= first], method=method, rtol=1e-8, output=file)
    assert part.method[-1] == last
    assert whole.method[-1] == "characteristics"
    same_rows(resume(file, times[times > first]), whole)


def test_an_interrupted_run_goes_on_to_its_end(command, write):
    def stop(t, n_modes, method):
        if t > 0.6:
            raise KeyboardInterrupt

    path = BrownianPath.draw(2, 1.0, 16, 7)
    with pytest.raises(KeyboardInterrupt):
        solve_common_noise(
            SelfAttention(3.0), START, VectorFields.planar(0.5), path, np.linspace(0.0, 1.0, 9), rtol=1e-9,
            n_modes=70, n_cells=128, output="run.h5", progress=stop,
        )  # fmt: skip
    assert len(Trajectory.load("run.h5")) == 5
    assert "  to go on  spectral-mf resume run.h5\n" in command("info", "run.h5")[1]
    assert command("resume", "run.h5", "-q") == (0, "run.h5\n", "")
    assert command("solve", write(), "-q", "-o", "one.h5")[0] == 0
    same_rows(Trajectory.load("run.h5"), Trajectory.load("one.h5"))


def test_a_run_out_of_modes_goes_on_with_more(command, write):
    noise = ("planar = 3.0\nn_steps = 32\nseed = 3", 1e-4)
    code, _, told = command("solve", write(*noise), "--max-modes", 64)
    assert code == 3
    assert "'spectral-mf resume run.h5 --max-modes 128' goes on." in told
    assert command("resume", "run.h5", "--max-modes", 4096, "-q")[0] == 0
    assert command("solve", write(*noise), "--max-modes", 4096, "-q", "-o", "one.h5")[0] == 0
    same_rows(Trajectory.load("run.h5"), Trajectory.load("one.h5"))


def test_a_run_at_the_end_of_its_path_is_over(command, write, tmp_path):
    assert command("solve", write(), "-q")[0] == 0
    before = (tmp_path / "run.h5").read_bytes()
    says = (
        "the run has come to the end of its path, t = 1, and cannot be resumed; solve again on a path with a later t_"
    )
    for arguments in ((), ("--t-end", 2)):
        code, shown, told = command("resume", "run.h5", *arguments)
        assert (code, shown) == (2, "")
        assert told.startswith("Error: " + says)
    assert says in command("info", "run.h5")[1]
    assert (tmp_path / "run.h5").read_bytes() == before


def test_a_run_does_not_go_beyond_its_path(command, write, tmp_path):
    assert command("solve", write(PLANAR + "\nt_end = 1.5"), "-q")[0] == 0
    before = (tmp_path / "run.h5").read_bytes()
    code, shown, told = command("resume", "run.h5", "--t-end", 2)
    assert (code, shown) == (2, "")
    assert "lies outside the path, which goes from 0 to 1.5" in told
    assert (tmp_path / "run.h5").read_bytes() == before


def test_a_path_twice_as_long_with_steps_twice_as_many_begins_likewise():
    short, long = (section(planar=1, n_steps=n, t_end=t, seed=7).path(2, 9.0) for n, t in ((16, 0.7), (32, 1.4)))
    assert (long.increments[:16] == short.increments).all()


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"planar": 0.5}, "the number of the path's steps is missing; give n_steps in the section [common_noise]."),
        ({"n_steps": 8}, "the section [common_noise] names no field; give rotation, planar or coefficients, or"),
        ({"planr": 0.5, "n_steps": 8}, "common_noise.planr is not known; did you mean planar?"),
        (
            {"zzz": 0.5},
            "common_noise.zzz is not known; the keys of [common_noise] are rotation, planar, coefficients, ",
        ),
        ({"planar": 0.5, "rtol": 1e-8}, "common_noise.rtol is not known; rtol belongs in the section [solver]."),
        ({"planar": "x", "n_steps": 8}, "common_noise.planar = 'x' is not a finite number."),
        ({"rotation": float("nan"), "n_steps": 8}, "common_noise.rotation = nan is not a finite number."),
        ({"planar": True, "n_steps": 8}, "common_noise.planar = True is not a finite number."),
        ({"planar": 0.5, "n_steps": 8.5}, "common_noise.n_steps = 8.5 is not an integer."),
        ({"coefficients": [0, 1], "n_steps": 8}, "common_noise.coefficients = [0, 1] is not a list of rows of complex"),
        ({"coefficients": [[True]], "n_steps": 8}, "common_noise.coefficients = [[True]] is not a list of rows"),
        ({"coefficients": [], "n_steps": 8}, "common_noise.coefficients = [] is not a list of rows"),
        ({"coefficients": [[0, "x"]], "n_steps": 8}, "common_noise.coefficients = [[0, 'x']] is not a list of rows"),
    ],
)
def test_what_is_wrong_in_the_section_is_said_in_one_sentence(keys, sentence):
    with pytest.raises(InputError) as caught:
        section(**keys)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"common_noise": 5}, "common_noise = 5 is not a section; write its keys below a line [common_noise]."),
        ({"comon_noise": {}}, "section [comon_noise] is not known; did you mean [common_noise]?"),
        ({"planar": 0.5}, "planar stands outside a section; put it below a line [common_noise]."),
    ],
)
def test_the_section_is_one_of_the_run_files(sections, sentence):
    with pytest.raises(InputError) as caught:
        RunConfig.from_sections({**SECTIONS, **sections})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("noise", "options", "says"),
    [
        (PLANAR, ("--symmetry", 1), "symmetry = 1 says nothing about a run with common noise; leave it out."),
        (PLANAR, ("--order", 3), "order = 3 says nothing about a run with common noise; leave it out."),
        (PLANAR, ("--method", "linear"), "method = 'linear' is unknown; choose one of auto, spectral, characteristics"),
        (PLANAR, ("--method", "characteristics", "--diffusion", 0.1), "use --method spectral, or --diffusion 0"),
        (PLANAR + "\nt_end = 0.5", (), "lies outside the path, which goes from 0 to 0.5; give times there"),
        ("planar = 0.5\nn_steps = 0", (), "n_steps = 0 is not allowed; give an integer of at least 1."),
        ("planar = 0.5\nn_steps = 4\nseed = -1", (), "seed = -1 is not allowed; give an integer >= 0."),
        ("coefficients = [[0, 1], [1]]\nn_steps = 4", (), "common_noise.coefficients = [[0, 1], [1]] is not a list of"),
        ('coefficients = [["1j", 1]]\nn_steps = 4', (), "field number 0 is not real"),
    ],
)
def test_what_is_not_allowed_is_refused_before_anything_is_computed(command, write, tmp_path, noise, options, says):
    code, shown, told = command("solve", write(noise), *options)
    assert (code, shown) == (2, "")
    assert told.startswith("Error: ")
    assert told.count("\n") == 1
    assert says in told
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


@pytest.mark.parametrize("where", ["common_noise", "grid"])
def test_a_sweep_does_not_leave_the_noise_out(where):
    noise = {"common_noise": {"planar": 0.5, "n_steps": 8}}
    varied = {"grid": {"model": {"beta": [1, 2]}}, **noise}
    if where == "grid":
        varied = {"grid": {"common_noise": {"planar": [0.1, 0.2]}}, "common_noise": {"n_steps": 8}}
    with pytest.raises(InputError, match=r"section \[common_noise\] has no place in a sweep file"):
        SweepPlan.from_sections({**SECTIONS, "model": {"beta": 3}, **varied})

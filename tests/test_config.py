"""Run files: what they mean, and the sentence for each thing that can be wrong in one."""

import hashlib
import json
import math

import numpy as np
import pytest

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention
from spectral_mf.config import RunConfig
from spectral_mf.initial_state import smooth

SHORTEST = {"model": {"beta": 5}, "initial": {"modes": {"3": 0.01}}, "time": {"t_end": 7}}


def config(options=None, **sections):
    return RunConfig.from_sections({**SHORTEST, **sections}, options)


def refusal(options=None, **sections):
    def prepare():
        made = config(options, **sections)
        made.model(), made.times(), made.initial_measure()

    with pytest.raises(InputError) as caught:
        prepare()
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence


# What a run file means


def test_every_section_of_a_run_file_reaches_the_run(tmp_path):
    np.save(tmp_path / "tokens.npy", np.random.default_rng(0).uniform(0, 2 * np.pi, 5000))
    (tmp_path / "run.toml").write_text(
        """
        [model]
        beta = 7
        normalization = "peak"
        diffusion = 0.01

        [initial]
        tokens = "tokens.npy"
        smooth_modes = 12

        [time]
        t_end = 1
        dt = 0.3

        [solver]
        method = "spectral"
        rtol = 1e-8
        max_modes = 2048
        symmetry = "none"

        [output]
        path = "out/run.h5"
        overwrite = true
        store_modes = 40
        cells = 128
        """,
        encoding="utf-8",
    )
    made = RunConfig.from_toml(tmp_path / "run.toml")
    assert made.model() == SelfAttention(7.0, "peak", 0.01)
    assert made.times().tolist() == [0.0, 0.3, 0.6, 0.9, 1.0]
    assert made.solve_options() == {
        "method": "spectral",
        "rtol": 1e-8,
        "max_modes": 2048,
        "symmetry": "none",
        "n_modes": 40,
        "n_cells": 128,
    }
    assert made.output.path == tmp_path / "out" / "run.h5"
    assert made.output.overwrite
    assert made.initial.tokens == tmp_path / "tokens.npy"


def test_what_is_left_out_has_the_default_of_solve():
    assert config().solve_options() == {}
    assert len(config().times()) == 101


@pytest.mark.parametrize("beta", [5, 5.0, "5", "5e0", " 5 "])
def test_numbers_may_be_written_as_text(beta):
    assert config(model={"beta": beta}).model().beta == 5.0


def test_exponents_are_numbers_whatever_their_form():
    solver = config(solver={"rtol": "1e-8", "max_modes": "1e4", "symmetry": "3"}).solve_options()
    assert solver == {"rtol": 1e-8, "max_modes": 10000, "symmetry": 3}
    assert type(solver["max_modes"]) is int


@pytest.mark.parametrize(
    "modes",
    [
        "3:0.01,2:0.003+0.001j",
        " 3 : 0.01 , 2 : 0.003 + 0.001j",
        {"3": 0.01, "2": "0.003+0.001j"},
    ],
)
def test_modes_are_moments(modes):
    start = config(initial={"modes": modes}).initial_measure()
    assert start.measure.moments(4).tolist() == [1, 0, 0.003 + 0.001j, 0.01, 0]
    assert start.provenance == {
        "kind": "modes",
        "modes": {"3": [0.01, 0.0], "2": [0.003, 0.001]},
        "description": "uniform density with c_2 = 0.003+0.001j, c_3 = 0.01",
    }


@pytest.mark.parametrize(("given", "mean"), [("4", 0.0), (4.0, 0.0), ("4,1.5", 1.5), ([4, 1.5], 1.5)])
def test_von_mises_with_and_without_mean(given, mean):
    start = config(initial={"von_mises": given}).initial_measure()
    # I_1(4) / I_0(4), from tables
    assert start.measure.moments(1)[1] == pytest.approx(0.863522611024550583 * np.exp(-1j * mean), abs=1e-14)


def test_options_replace_keys_of_the_file():
    made = config({"model": {"beta": "7"}, "time": {"dt": "0.5"}})
    assert (made.model().beta, made.time.t_end, made.time.dt) == (7.0, 7.0, 0.5)


def test_an_option_for_another_initial_state_replaces_the_section():
    noise = {"white_noise": 0.02, "noise_points": 500, "seed": 3}
    assert config({"initial": {"modes": "2:0.1"}}, initial=noise).initial.kind == "modes"
    louder = config({"initial": {"white_noise": "0.04"}}, initial=noise).initial
    assert (louder.white_noise, louder.noise_points, louder.seed) == (0.04, 500, 3)


def test_paths_start_from_the_folder_of_the_file_and_options_from_here(tmp_path):
    sections = {**SHORTEST, "initial": {"tokens": "t.npy"}, "output": {"path": "run.h5"}}
    made = RunConfig.from_sections(sections, folder=tmp_path)
    assert (made.initial.tokens, made.output.path) == (tmp_path / "t.npy", tmp_path / "run.h5")
    made = RunConfig.from_sections(sections, {"output": {"path": "here.h5"}}, folder=tmp_path)
    assert str(made.output.path) == "here.h5"


def test_the_home_folder_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config({"output": {"path": "~/run.h5"}}).output.path == tmp_path / "run.h5"


# Initial states


def test_tokens_are_smoothed_with_all_modes_that_the_kernel_sees(tmp_path):
    angles = np.random.default_rng(1).uniform(0, 2 * np.pi, 10_000)
    file = tmp_path / "tokens.npy"
    np.save(file, angles)
    start = config(initial={"tokens": str(file)}).initial_measure()
    K = SelfAttention(5.0).bandwidth
    brute = np.exp(-1j * np.outer(np.arange(K + 1), angles)).mean(axis=1)
    assert start.measure.n_modes == K
    assert np.abs(start.measure.moments(K) - brute).max() < 1e-13
    assert start.provenance == {
        "kind": "tokens",
        "file": str(file),
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "n_tokens": 10_000,
        "smooth_modes": K,
        "description": f"10000 tokens of {file}, smoothed to {K} modes",
    }


def test_few_tokens_bear_fewer_modes_the_most_that_are_nowhere_negative():
    tokens = Atoms.sample_uniform(200, 7)
    density = smooth(tokens, SelfAttention(5.0))
    kept = density.n_modes
    assert 4 <= kept < SelfAttention(5.0).bandwidth
    theta = np.linspace(0, 2 * np.pi, 5000)
    assert density.density(theta).min() >= 0.0
    for more in range(kept + 1, SelfAttention(5.0).bandwidth + 1):
        c = tokens.moments(more)
        p = 1 + 2 * (c[1:, None] * np.exp(1j * np.outer(np.arange(1, more + 1), theta))).real.sum(axis=0)
        assert p.min() < 0


def test_too_few_tokens_are_refused_with_advice():
    with pytest.raises(InputError, match=r"10 tokens make no density: with 4 modes.*give more tokens"):
        smooth(Atoms.sample_uniform(10, 0), SelfAttention(5.0))


def test_modes_asked_for_are_kept_or_refused():
    tokens = Atoms.sample_uniform(200, 7)
    assert smooth(tokens, SelfAttention(5.0), 5).n_modes == 5
    with pytest.raises(InputError, match="negative"):
        smooth(tokens, SelfAttention(5.0), 100)


def test_a_method_that_moves_points_gets_the_tokens_themselves():
    sections = {"initial": {"uniform_tokens": 50, "seed": 3}, "solver": {"method": "characteristics"}}
    start = config(**sections).initial_measure()
    assert isinstance(start.measure, Atoms)
    assert np.array_equal(start.measure.angles, Atoms.sample_uniform(50, 3).angles)


@pytest.mark.parametrize("initial", [{"uniform_tokens": 10_000}, {"white_noise": 0.01}])
def test_a_seed_that_is_not_given_is_drawn_and_kept(initial):
    first, second = (config(initial=initial).initial_measure() for _ in range(2))
    assert first.provenance["seed"] != second.provenance["seed"]
    assert str(first.provenance["seed"]) in first.description
    again = config(initial={**initial, "seed": first.provenance["seed"]}).initial_measure()
    assert np.array_equal(again.measure.moments(20), first.measure.moments(20))
    assert again.provenance == first.provenance


def test_white_noise_has_the_points_asked_for():
    start = config(initial={"white_noise": 0.1, "noise_points": 400, "seed": 5}).initial_measure()
    expected = FourierDensity.white_noise(0.1, 400, 5)
    assert np.array_equal(start.measure.moments(64), expected.moments(64))


@pytest.mark.parametrize(
    "initial",
    [
        {"modes": "3:0.01"},
        {"von_mises": "4,1"},
        {"white_noise": 0.01},
        {"uniform_tokens": 10_000},
    ],
)
def test_the_record_of_an_initial_state_is_plain_json(initial):
    record = config(initial=initial).initial_measure().provenance
    assert json.loads(json.dumps(record, allow_nan=False)) == record


# What is wrong


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"model": {"bta": 5}}, "model.bta is not known; did you mean beta?"),
        ({"modle": {"beta": 5}}, "section [modle] is not known; did you mean [model]?"),
        ({"model": {"beta": 5, "zzz": 1}}, "model.zzz is not known; the keys of [model] are beta, normalization, diff"),
        ({"zzz": {}}, "section [zzz] is not known; the sections are [model], [initial], [time], [solver], [output], ["),
        ({"beta": 5}, "beta stands outside a section; put it below a line [model]."),
        ({"solver": {"t_end": 5}}, "solver.t_end is not known; t_end belongs in the section [time]."),
        ({"solver": 5}, "solver = 5 is not a section; write its keys below a line [solver]."),
        ({"model": {"beta": "five"}}, "model.beta = 'five' is not a number."),
        ({"model": {"beta": True}}, "model.beta = True is not a number."),
        ({"model": {"beta": [5]}}, "model.beta = [5] is not a number."),
        ({"model": {}}, "the inverse temperature is missing; give --beta, or beta in the section [model] of a run"),
        ({"time": {}}, "the end time is missing; give --t-end, or t_end in the section [time] of a run file."),
        ({"model": {"beta": -1}}, "beta = -1 is not allowed"),
        ({"model": {"beta": math.nan}}, "beta = nan is not allowed"),
        ({"model": {"beta": 5, "normalization": "soft"}}, "normalization = 'soft' is unknown; choose one of softmax"),
        ({"model": {"beta": 5, "diffusion": -1}}, "diffusion = -1 is not allowed"),
        ({"time": {"t_end": 0}}, "t_end = 0 is not allowed; give an end time > 0."),
        ({"time": {"t_end": -2}}, "t_end = -2 is not allowed"),
        ({"time": {"t_end": math.inf}}, "t_end = inf is not finite"),
        ({"time": {"t_end": 1, "dt": 0}}, "the output interval 0 is not positive"),
        ({"solver": {"max_modes": 10.5}}, "solver.max_modes = 10.5 is not an integer."),
        ({"solver": {"symmetry": 1.5}}, 'solver.symmetry = 1.5 is neither an integer nor "auto" nor "none".'),
        ({"output": {"overwrite": "yes"}}, "output.overwrite = 'yes' is neither true nor false."),
        ({"output": {"path": 3}}, "output.path = 3 is not a path."),
        ({"initial": {}}, "the initial state is missing; give one of --tokens, --uniform-tokens, --modes, --von-mises"),
        (
            {"initial": {"modes": "3:0.1", "white_noise": 0.1}},
            "initial.modes and initial.white_noise exclude each other; give one initial state.",
        ),
        (
            {"initial": {"modes": "3:0.1", "seed": 3}},
            "initial.seed belongs to --uniform-tokens or --white-noise, not to initial.modes; leave it out.",
        ),
        (
            {"initial": {"white_noise": 0.1, "smooth_modes": 3}},
            "initial.smooth_modes belongs to --tokens or --uniform-tokens, not to initial.white_noise; leave it out.",
        ),
        ({"initial": {"modes": "3"}}, "initial.modes = '3' has '3', which is not mode:moment; write it like 3:0.01"),
        ({"initial": {"modes": "3:x"}}, "initial.modes = '3:x' has '3:x', which is not mode:moment"),
        ({"initial": {"modes": "3:0.1,3:0.2"}}, "initial.modes = '3:0.1,3:0.2' gives mode 3 twice."),
        ({"initial": {"modes": ""}}, "initial.modes = '' names no mode"),
        ({"initial": {"modes": "0:1"}}, "mode 0 is not allowed"),
        ({"initial": {"modes": "3:0.6"}}, "the density is negative at theta = 3.142"),
        ({"initial": {"modes": "3:nan"}}, "moment c_3 = (nan+0j) is not finite"),
        ({"initial": {"von_mises": "a"}}, "initial.von_mises = 'a' is not a concentration"),
        ({"initial": {"von_mises": -1}}, "kappa = -1 is not allowed"),
        ({"initial": {"white_noise": math.nan}}, "sigma = nan is not allowed"),
        ({"initial": {"white_noise": 0.1, "seed": -1}}, "seed = -1 is not allowed; give an integer >= 0."),
        ({"initial": {"uniform_tokens": 0}}, "n_tokens = 0 is not allowed"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(sections, sentence):
    assert refusal(**sections).startswith(sentence)


def test_tokens_that_are_not_there():
    assert "missing.npy" in refusal(initial={"tokens": "missing.npy"})


def test_values_of_options_are_called_by_the_option():
    assert refusal({"time": {"t_end": "x"}}) == "--t-end = 'x' is not a number."
    assert refusal({"output": {"path": ""}}) == "--output = '' is not a path."
    both = refusal({"initial": {"tokens": "t.npy", "modes": "3:0.1"}})
    assert both == "--tokens and --modes exclude each other; give one initial state."
    assert refusal({"initial": {"seed": "1"}}).startswith("--seed belongs to --uniform-tokens or --white-noise, not to")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[model\nbeta = 5", "is not a run file in TOML: Expected"),
        (b"\x89HDF\r\n\x1a\n\xff", "is not a run file in TOML: it is not text"),
    ],
)
def test_a_file_that_is_not_toml(tmp_path, content, words):
    (tmp_path / "run.toml").write_bytes(content)
    with pytest.raises(InputError, match=words):
        RunConfig.from_toml(tmp_path / "run.toml")


def test_a_run_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"run\.toml does not exist"):
        RunConfig.from_toml(tmp_path / "run.toml")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        RunConfig.from_toml(tmp_path)

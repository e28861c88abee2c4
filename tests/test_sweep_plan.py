"""What a sweep file may say, and the one sentence for what it may not."""

import math

import numpy as np
import pytest

from spectral_mf import InputError
from spectral_mf.sweep import SweepPlan

SECTIONS = {
    "grid": {"model": {"beta": [1.0, 5.0]}, "initial": {"seed": [3, 1]}},
    "model": {"normalization": "none"},
    "initial": {"white_noise": 0.1},
    "time": {"t_end": 2.0, "dt": 0.5},
}


def plan(**changes):
    return SweepPlan.from_sections({**SECTIONS, **changes})


def test_cases_are_run_files_numbered_along_the_grid():
    made = plan()
    assert made.shape == (2, 2)
    assert made.case(2) == {
        "model": {"normalization": "none", "beta": 5.0},
        "initial": {"white_noise": 0.1, "seed": 3},
        "time": {"t_end": 2.0, "dt": 0.5},
    }
    assert made.describe(1) == "beta = 1.0, seed = 1"
    assert made.times.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_a_range_is_exact_and_of_integers_where_it_can_be():
    grid = {"model": {"beta": {"start": 0.05, "stop": 10.0, "count": 200}}}
    values = plan(grid=grid, initial={"modes": {3: 0.01}}).axes[0].values
    assert values == tuple(float(f"{5 * i}e-2") for i in range(1, 201))  # decimal numbers, rounded once
    seeds = plan(grid={"model": {"beta": [1]}, "initial": {"seed": {"start": 0, "stop": 9, "count": 10}}}).axes[1]
    assert seeds.coordinate.dtype == np.int64
    assert seeds.values == tuple(range(10))
    logarithmic = {"model": {"beta": {"start": 1, "stop": 100, "count": 3, "spacing": "log"}}}
    np.testing.assert_allclose(plan(grid=logarithmic, initial={"modes": {3: 0.01}}).axes[0].values, [1, 10, 100])


def test_named_initial_states_are_an_axis_and_fill_the_section():
    made = SweepPlan.from_sections(
        {
            "grid": {"model": {"beta": [5.0]}},
            "initials": {"three": {"modes": {"3": 0.01}}, "noise": {"white_noise": 0.1, "seed": 7}},
            "time": {"t_end": 1.0},
        }
    )
    assert made.axes[1].name == "initial"
    assert made.axes[1].coordinate.tolist() == ["three", "noise"]
    assert made.case(1)["initial"] == {"white_noise": 0.1, "seed": 7}


def test_what_is_no_number_is_labelled_by_its_text():
    axis = plan(grid={"initial": {"modes": [{"3": 0.01}, {"2": 0.01}]}}, initial={}, model={"beta": 5.0}).axes[0]
    assert axis.coordinate.tolist() == ['{"3": 0.01}', '{"2": 0.01}']


def test_paths_start_from_the_folder_of_the_file(tmp_path):
    (tmp_path / "sweep.toml").write_text(
        '[grid]\nmodel.beta = [1, 5]\n[initial]\ntokens = "tokens.npy"\n[time]\nt_end = 1\n'
    )
    np.save(tmp_path / "tokens.npy", np.arange(5.0))
    made = SweepPlan.from_toml(tmp_path / "sweep.toml")
    assert made.case(0)["initial"]["tokens"] == str(tmp_path / "tokens.npy")
    before = made.identity
    np.save(tmp_path / "tokens.npy", np.arange(6.0))
    assert SweepPlan.from_toml(tmp_path / "sweep.toml").identity != before  # other tokens, another sweep


def test_a_value_that_is_not_allowed_is_for_its_case_to_refuse():
    assert math.isnan(plan(grid={"model": {"beta": [1.0, math.nan]}, "initial": {"seed": [1]}}).axes[0].values[1])


TIED = [{"initial": {"uniform_tokens": [100, 1000]}, "model": {"beta": [4.6, 6.9]}}]


def tied(**changes):
    sections = {"grid": {"initial": {"seed": [3, 1, 2]}}, "together": TIED, "time": {"t_end": 1.0}}
    return SweepPlan.from_sections({**sections, **changes})


def test_keys_that_change_together_are_one_axis():
    made = tied()
    assert made.shape == (3, 2)
    assert [axis.name for axis in made.axes] == ["seed", "uniform_tokens"]
    assert made.case(3) == {
        "initial": {"uniform_tokens": 1000, "seed": 1},
        "model": {"beta": 6.9},
        "time": {"t_end": 1.0},
    }
    assert made.describe(3) == "seed = 1, uniform_tokens = 1000, beta = 6.9"


def test_a_tied_key_may_have_a_value_twice_and_is_part_of_the_identity():
    again = [{"initial": {"uniform_tokens": [100, 1000]}, "model": {"beta": [4.6, 4.6]}}]
    assert [tied(together=again).case(i)["model"]["beta"] for i in (0, 1)] == [4.6, 4.6]
    assert tied(together=again).identity != tied().identity


def test_token_files_of_tied_keys_are_part_of_the_identity(tmp_path):
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.arange(3.0))
    tables = [{"model": {"beta": [1.0, 2.0]}, "initial": {"tokens": ["a.npy", "b.npy"]}}]

    def made():
        return SweepPlan.from_sections({"together": tables, "time": {"t_end": 1.0}}, folder=tmp_path)

    before = made()
    assert before.case(1)["initial"]["tokens"] == str(tmp_path / "b.npy")
    assert before.identity == made().identity
    identity = before.identity
    np.save(tmp_path / "b.npy", np.arange(4.0))
    assert made().identity != identity


@pytest.mark.parametrize(
    ("together", "sentence"),
    [
        (
            [{"initial": {"uniform_tokens": [100, 1000]}, "model": {"beta": [4.6]}}],
            "together.model.beta has 1 value and together.initial.uniform_tokens 2; they change together",
        ),
        ([{"model": {"beta": [4.6]}}], "a table [[together]] has fewer than two keys; a key that changes alone"),
        ({"model": {"beta": [4.6]}}, "together = {'model': {'beta': [4.6]}} is no list of tables; write keys below a"),
        ([3], "together = 3 is no table of keys; write them below a line [[together]]."),
        ([{"beta": [1.0], "seed": [1]}], "together.beta names no section; write the key with its section, as in"),
        ([*TIED, {"model": {"beta": [1.0], "diffusion": [0.0]}}], "two dimensions of the sweep would be called beta;"),
        ([{"time": {"t_end": [1]}, "model": {"beta": [1.0]}}], "together.time is not allowed: all cases share their"),
        ([{"initial": {"uniform_tokens": [9, 9]}, "model": {"beta": [1, 2]}}], "together.initial.uniform_tokens has 9"),
        ([{"initial": {"uniform_tokens": [9, 99]}, "model": {"bta": [1, 2]}}], "model.bta is not known; did you mean"),
    ],
)
def test_what_is_wrong_about_keys_that_change_together_gets_one_sentence(together, sentence):
    with pytest.raises(InputError) as refused:
        tied(together=together)
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_more_than_a_million_cases_are_refused():
    thousand = {"start": 1, "stop": 1001, "count": 1001}
    with pytest.raises(InputError, match=r"the grid has 1001000 cases \(1001 of beta x 1000 of seed\); a sweep has at"):
        plan(grid={"model": {"beta": thousand}, "initial": {"seed": list(range(1000))}})
    with pytest.raises(InputError, match="count = 10000000 is too large: a sweep has at most 1000000 cases; split it"):
        plan(grid={"initial": {"seed": {"start": 0, "stop": 9999999, "count": 10_000_000}}})


@pytest.mark.parametrize("seeds", [(3, 1), range(1, 3), np.array([3, 1])])
def test_rows_of_values_may_come_from_python(seeds):
    axis = plan(grid={"model": {"beta": np.array([1.0, 5.0])}, "initial": {"seed": seeds}}).axes[1]
    assert axis.values == tuple(int(seed) for seed in seeds)
    assert axis.coordinate.dtype == np.int64


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"grid": {}}, "the grid is empty; give values for a key"),
        ({"grid": {"model": {"beta": []}}}, "grid.model.beta is empty: the sweep would have no case"),
        ({"grid": {"model": {"beta": 5.0}}}, "grid.model.beta = 5.0 is not a row of values; give a list"),
        ({"grid": {"beta": [1.0]}}, "grid.beta names no section; write the key with its section, as in model.beta."),
        ({"grid": {"model": {"beta": [1.0, 1.0]}}}, "grid.model.beta has 1.0 twice; give each value once."),
        ({"grid": {"model": {"bta": [1.0]}}}, "model.bta is not known; did you mean"),
        ({"grid": {"modle": {"beta": [1.0]}}}, "section [modle] is not known; did you mean [model]?"),
        ({"grid": {"model": {"beta": ["x"]}}}, "model.beta = 'x' is not a number."),
        ({"grid": {"model": {"beta": {"start": 1, "stop": 2}}}}, "grid.model.beta.count is missing; give start"),
        (
            {"grid": {"model": {"beta": {"start": 1, "stop": 2, "count": 0}}}},
            "grid.model.beta.count = 0 is not allowed",
        ),
        ({"grid": {"model": {"beta": {"from": 1}}}}, "grid.model.beta.from is not known; a range has start, stop"),
        (
            {"grid": {"model": {"beta": {"start": 1, "stop": 2, "count": 2, "spacing": "cubic"}}}},
            "grid.model.beta.spacing = 'cubic' is not known",
        ),
        ({"grid": {"time": {"t_end": [1, 2]}}}, "grid.time is not allowed: all cases share their rows"),
        ({"gird": {}}, "section [gird] is not known; did you mean [grid]?"),
        ({"grid": 3}, "grid = 3 is not a section; write its keys below a line [grid]."),
        ({"model": {"betta": 1.0}}, "model.betta is not known; did you mean"),
        ({"output": {"path": "x.h5"}}, "output.path has no place in a sweep file; only output.store_modes has."),
        ({"output": {"store_modes": 0}}, "output.store_modes = 0 is not allowed"),
        ({"time": {"t_end": -1.0}}, "t_end = -1 is not allowed; give an end time > 0."),
        ({"initials": {"a": {"white_noise": 0.1}}}, "[initial] and [initials] exclude each other"),
        ({"initials": {"a": 3}, "initial": {}}, "initials.a = 3 is not an initial state; write a table for it."),
        (
            {"grid": {"model": {"beta": [1.0]}}},
            "initial.white_noise is random and has no seed, so no case could be repeated",
        ),
    ],
)
def test_what_is_wrong_gets_one_sentence(changes, sentence):
    with pytest.raises(InputError) as refused:
        plan(**changes)
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"[grid", "is not a sweep file in TOML"), (b"\xff\xfe", "it is not text"), (None, "does not exist")],
)
def test_a_file_that_cannot_be_read_gets_one_sentence(tmp_path, content, words):
    path = tmp_path / "sweep.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        SweepPlan.from_toml(path)

"""Every model by name: from run files and options, through HDF5, resumed, shown and drawn."""

import json

import numpy as np
import pytest
from scipy.special import i0, iv

from spectral_mf import FourierDensity, InputError, StorageError, Trajectory, resume, solve
from spectral_mf.cli.app import run as spectral_mf_command
from spectral_mf.config import RunConfig
from spectral_mf.errors import StoppedEarly
from spectral_mf.models import MODELS, make_model
from spectral_mf.pictures import PICTURES, draw
from spectral_mf.storage.kinds import restore_model

HEADS = [
    {"query_key": [[1.0, 0.2], [0.2, -0.5]], "value": [[1.0, 0.2], [0.2, -0.5]], "beta": 2.0},
    {"query_key": [[0.5, 0.0], [0.0, 0.5]], "value": [[0.0, -1.0], [1.0, 0.0]], "beta": 1.0},
]
EXAMPLES = {
    "SelfAttention": {"beta": 3.0, "normalization": "none"},
    "MultiHeadAttention": {"heads": HEADS},
    "PairPotential": {"coefficients": [0.0, 0.5, 0.2, -0.1]},
    "Kuramoto": {"strength": 2.0},
    "HegselmannKrause": {"radius": 1.2, "strength": 1.0},
}
START = FourierDensity.from_modes({1: 0.1, 2: 0.05j, 3: 0.02})


@pytest.fixture(params=MODELS)
def model(request):
    return make_model({"type": request.param, **EXAMPLES[request.param]})


def test_every_model_survives_json(model):
    assert restore_model(json.loads(json.dumps(model.to_dict()))) == model


def test_every_model_is_stored_and_resumed_bit_for_bit(model, tmp_path):
    whole = solve(model, START, [0.0, 0.1, 0.2, 0.3, 0.4], method="spectral")
    solve(model, START, [0.0, 0.1, 0.2], method="spectral", output=tmp_path / "run.h5")
    again = resume(tmp_path / "run.h5", [0.3, 0.4])
    assert again.model == model
    np.testing.assert_array_equal(again.moments, whole.moments)
    np.testing.assert_array_equal(Trajectory.load(tmp_path / "run.h5").energy, again.energy)


@pytest.mark.parametrize("picture", sorted(PICTURES))
@pytest.mark.parametrize("name", ["SelfAttention", "MultiHeadAttention", "PairPotential"])
def test_every_picture_can_be_drawn_or_says_why_not(name, picture):
    model = make_model({"type": name, **EXAMPLES[name]})
    run = solve(model, START, np.linspace(0.0, 24.0, 7), rtol=1e-7)
    if picture == "staircase" and name != "SelfAttention":
        with pytest.raises(InputError, match="known for SelfAttention"):
            draw(run, picture)
    else:
        draw(run, picture).canvas.draw()


TOML = """
[model]
type = "MultiHeadAttention"
normalization = "none"

[[model.heads]]
query_key = [[1.0, 0.2], [0.2, -0.5]]
value = [[1.0, 0.2], [0.2, -0.5]]
beta = 2.0

[[model.heads]]
query_key = [[0.5, 0.0], [0.0, 0.5]]
value = [[0.0, -1.0], [1.0, 0.0]]
beta = 1.0

[initial]
modes = { 1 = 0.1, 2 = "0.05j" }

[time]
t_end = 0.2
"""


def test_a_run_file_with_heads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heads.toml").write_text(TOML, encoding="utf-8")
    assert spectral_mf_command(["solve", "heads.toml", "--diffusion", "0.01", "-q"]) == 0
    run = Trajectory.load("heads.h5")
    assert run.model == make_model(
        {"type": "MultiHeadAttention", "heads": HEADS, "normalization": "none", "diffusion": 0.01}
    )
    assert np.isnan(run.energy).all()
    assert spectral_mf_command(["resume", "heads.h5", "--t-end", "0.3", "-q"]) == 0
    assert spectral_mf_command(["plot", "heads.h5", "-o", "heads.png"]) == 0
    capsys.readouterr()
    assert spectral_mf_command(["info", "heads.h5", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["model"]["heads"] == HEADS
    assert known["energy"] == [None, None]
    assert spectral_mf_command(["info", "heads.h5"]) == 0
    assert "MultiHeadAttention" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ["--type", "MultiHeadAttention", "--heads", json.dumps(HEADS)],
        ["--type", "PairPotential", "--coefficients", "0,0.5,0.2,-0.1"],
        ["--type", "Kuramoto", "--strength", "2"],
        ["--type", "HegselmannKrause", "--radius", "1.2"],
    ],
)
def test_models_by_options(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert spectral_mf_command(["solve", *options, "--modes", "1:0.1", "--t-end", "0.1", "-q"]) == 0
    assert Trajectory.load("run.h5").model == make_model({"type": options[1], **EXAMPLES[options[1]]})


TURNING = [
    {"query_key": [[b, 0.0], [0.0, b]], "value": [[v, 0.0], [0.0, v]], "beta": 2.0} for b, v in ((1, 1), (2, -0.5))
]


@pytest.mark.parametrize(
    ("options", "rates"),
    [
        (["--type", "Kuramoto", "--strength", "3", "--diffusion", "0.4"], [1.1, -1.6, -3.6]),
        (["--type", "PairPotential", "--coefficients", "0.3,0.5,-0.2,0.1"], [0.5, -0.8, 0.9]),
        (
            ["--type", "HegselmannKrause", "--radius", "0.8", "--strength", "2", "--kept-modes", "2"],
            [2.0 * (np.sin(0.8) - 0.8 * np.cos(0.8)) / np.pi, (np.sin(1.6) - 1.6 * np.cos(1.6)) / np.pi, 0.0],
        ),
        (
            ["--type", "MultiHeadAttention", "--heads", json.dumps(TURNING)],
            [k**2 * (iv(k, 2.0) / i0(2.0) / 2.0 - 0.5 * iv(k, 4.0) / i0(4.0) / 4.0) for k in (1, 2, 3)],
        ),
    ],
)
def test_linear_theory_of_any_model_that_has_one(options, rates, capsys):
    assert spectral_mf_command(["linear", *options, "--modes", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [row["growth_rate"] for row in answer["modes"]] == pytest.approx(rates, rel=1e-12, abs=1e-13)
    assert all("overtaken_at_beta" not in row for row in answer["modes"])
    assert answer["model"]["type"] == ("MultiHeadAttention" if "--heads" in options else "PairPotential")
    assert spectral_mf_command(["linear", *options]) == 0
    shown = capsys.readouterr().out
    assert f"{answer['largest_rate']:.10g}" in shown
    assert "overtakes" not in shown


def test_linear_theory_takes_the_model_of_a_run_file(tmp_path, capsys):
    (tmp_path / "run.toml").write_text('[model]\ntype = "Kuramoto"\nstrength = 3\n[odd]\nx = 1\n', encoding="utf-8")
    assert spectral_mf_command(["linear", str(tmp_path / "run.toml"), "--diffusion", "0.4", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["largest_rate"] == pytest.approx(1.1, rel=1e-15, abs=0.0)
    assert answer["exit_time"]["growth_rate"] == answer["largest_rate"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--type", "MultiHeadAttention", "--heads", json.dumps(HEADS)], "modes of a perturbed uniform density do not"),
        (
            ["--type", "Kuramoto", "--dimension", "3"],
            "PairPotential(Kuramoto, strength 1, diffusion=0) has growth rates on",
        ),
        (["--type", "Kuramoto", "--beta", "3"], "--beta is no parameter of Kuramoto, which has strength, diffusion"),
        (["--type", "HegselmannKrause", "--radius", "1", "--kept-modes", "0"], "kept_modes = 0 is not allowed"),
    ],
)
def test_what_has_no_linear_theory_says_so_in_one_sentence(options, sentence, capsys):
    assert spectral_mf_command(["linear", *options]) == 2
    shown, told = capsys.readouterr()
    assert shown == ""
    assert told.startswith(f"Error: {sentence}")
    assert told.count("\n") == 1


def test_tokens_become_a_density_without_growth_rates():
    sections = {
        "model": {"type": "MultiHeadAttention", "heads": HEADS},
        "initial": {"uniform_tokens": 500, "seed": 1},
        "time": {"t_end": 1},
    }
    assert RunConfig.from_sections(sections).initial_measure().measure.n_modes >= 2


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ({"type": "Kuramto"}, "model type = 'Kuramto' is unknown; did you mean Kuramoto?"),
        (
            {"type": "PositionalAttention"},
            "the inverse temperature is missing; give --beta, or beta",
        ),
        (
            {"type": "PositionalAttention", "beta": 5},
            "model type = 'PositionalAttention' has positions, which only 'spectral-mf solve' and spectral_mf.so",
        ),
        ({"type": "zzz"}, "model type = 'zzz' is unknown; choose one of SelfAttention, Multi"),
        (
            {"type": "Kuramoto", "beta": 5},
            "model.beta is no parameter of Kuramoto, which has strength, diffusion; leave",
        ),
        (
            {"beta": 5, "radius": 1},
            "model.radius is no parameter of SelfAttention, which has beta, normalization, diffu",
        ),
        (
            {"type": "MultiHeadAttention"},
            "MultiHeadAttention needs heads; give --heads, or heads in the section [model].",
        ),
        ({"type": "HegselmannKrause"}, "HegselmannKrause needs radius; give --radius"),
        ({"type": "MultiHeadAttention", "heads": "[{"}, "model.heads = '[{' is not a list of heads; write"),
        ({"type": "MultiHeadAttention", "heads": []}, "heads are missing; give at least one"),
        ({"type": "MultiHeadAttention", "heads": [{"value": 1}]}, "a head lacks its query_key; give"),
        ({"type": "PairPotential", "coefficients": "0,x"}, "model.coefficients = '0,x' is not a row of numbers"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(section, sentence):
    sections = {"model": section, "initial": {"modes": "1:0.1"}, "time": {"t_end": 1}}
    with pytest.raises(InputError) as refusal:
        RunConfig.from_sections(sections).model()
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"type": "Kuramoto", "beta": 1.0}, "Kuramoto has no beta; its parameters are strength, diffusion."),
        ({"type": "SelfAttention"}, "SelfAttention needs beta; give it."),
        ({}, "model type = '' is unknown"),
    ],
)
def test_models_are_made_of_their_parameters_only(parameters, sentence):
    with pytest.raises(InputError) as refusal:
        make_model(parameters)
    assert str(refusal.value).startswith(sentence)


def test_a_model_of_a_newer_version_is_named():
    with pytest.raises(StorageError, match="holds a model of kind 'Newer', which this version does not know"):
        restore_model({"type": "Newer"})


def test_a_run_that_ends_early_keeps_its_model(tmp_path):
    model = make_model({"type": "MultiHeadAttention", "heads": HEADS[:1]})
    with pytest.raises(StoppedEarly):
        solve(model, START, [0.0, 1.0, 60.0], method="spectral", max_modes=128, output=tmp_path / "run.h5")
    assert Trajectory.load(tmp_path / "run.h5").model == model

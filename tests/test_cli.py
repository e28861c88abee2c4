"""The command line without a run: help, version, tables, and one sentence for whatever is wrong."""

import json
import os
import re
import shlex
import subprocess
import sys
from typing import get_args

import pytest
from typer.testing import CliRunner

import spectral_mf
from spectral_mf.cli.app import app, run

COMMANDS = ("demo", "solve", "resume", "info", "plot", "export", "linear", "validate")
HEAVY = ("numpy", "scipy", "matplotlib", "h5py", "pyfftw", "finufft", "xarray")


def shell(*arguments, **options):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-c", "from spectral_mf.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def shown(*arguments):
    """Stdout of a command that runs in this process and ends well."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "spectral_mf", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"spectral-mf {spectral_mf.__version__}\n", "")


def test_version():
    done = shell("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"spectral-mf {spectral_mf.__version__}\n", "")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["solve", "--help"]])
def test_help_and_version_load_no_numerical_library(arguments):
    code = (
        "import sys\nfrom spectral_mf.cli.app import run\n"
        f"assert run({arguments}) == 0\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "[]"


def test_without_a_command_the_help_is_shown():
    assert shown() == shown("--help")
    assert all(command in shown() for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(command):
    assert f"spectral-mf {command}" in shown(command, "--help").replace("Usage: root", "Usage: spectral-mf")


RUN_FILES_ONLY = {"common_noise", "positions", "decay", "rotary", "query_key"}
"""Sections and keys that have no options."""


def test_every_key_of_a_run_file_has_an_option_and_both_are_documented(checkout):
    from spectral_mf.config import RunConfig
    from spectral_mf.config_errors import option_name

    help_page = shown("solve", "--help")
    page = (checkout / "docs" / "command-line.md").read_text(encoding="utf-8")
    keys = [
        (field.alias or section, key)
        for section, field in RunConfig.model_fields.items()
        if section not in RUN_FILES_ONLY
        for key in field.annotation.model_fields
        if key not in RUN_FILES_ONLY
    ]
    assert len(keys) > 15
    for section, key in keys:
        option = option_name(section, key)
        assert option in help_page
        assert f"| `{option}`" in page
        assert f"`{key}` |" in page
        assert f"`[{section}]`" in page


def test_the_help_of_solve_names_every_method_and_no_other(checkout):
    from spectral_mf.solvers.run import _MARCHES, Method

    assert set(get_args(Method)) == set(_MARCHES)
    words = " ".join(re.sub("[^a-z() ]", " ", shown("solve", "--help")).split())  # without the frame
    assert "auto (default) characteristics linear quasilinear or spectral" in words
    page = (checkout / "docs" / "command-line.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| `--method`")]
    assert set(re.findall("`([a-z]+)`", row.split("|")[3])) == set(_MARCHES)


# linear


def linear(*arguments):
    return json.loads(shown("linear", "--json", *arguments))


def test_rates_are_those_of_linear_theory():
    answer = linear("--beta", 1)
    rates = [row["growth_rate"] for row in answer["modes"][:5]]
    # k^2 I_k(1) / I_0(1), two methods, 40 digits
    known = [0.4463899658965345, 0.4288802728277239, 0.1575872376192951, 0.03459055670508169, 0.00536036790674302]
    assert rates == pytest.approx(known, rel=1e-13, abs=0.0)
    assert answer["dominant_modes"] == [1]
    assert answer["modes"][0]["overtaken_at_beta"] == pytest.approx(1.044456862107774, abs=1e-12)


def test_a_tie_is_shown_as_a_tie():
    tie = 3.165434442700567713602
    assert linear("--beta", tie)["dominant_modes"] == [2, 3]
    assert linear("--beta", tie, "--normalization", "none")["dominant_modes"] == [2, 3]
    assert "Modes 2 and 3 tie for the largest rate, 0.6077528707" in shown("linear", "--beta", tie)
    assert linear("--beta", tie - 1e-6)["dominant_modes"] == [2]
    assert linear("--beta", tie + 1e-6)["dominant_modes"] == [3]


def test_the_table_holds_the_dominant_mode_at_large_beta():
    answer = linear("--beta", 1000)
    assert answer["dominant_modes"] == [45]
    assert 45 in [row["k"] for row in answer["modes"]]
    assert len(answer["modes"]) <= 20
    assert [row["k"] for row in linear("--beta", 1000, "--modes", 3)["modes"]] == [1, 2, 3]


def test_modes_that_are_left_out_are_told():
    text = shown("linear", "--beta", 1000)
    assert "Modes 1 to 28 are left out; --modes 48 shows them too.\n" in text
    assert "│ 29 │" in text
    assert "│ 28 │" not in text
    whole = shown("linear", "--beta", 1000, "--modes", 48)
    assert "left out" not in whole
    assert whole.count("│ ") > 48
    assert "left out" not in shown("linear", "--beta", 5)


def test_a_stable_uniform_density_is_said_to_be_stable():
    answer = linear("--beta", 5, "--diffusion", 0.2)
    assert not answer["unstable"]
    assert "exit_time" not in answer
    assert all(row["time_to_grow_tenfold"] is None for row in answer["modes"])
    assert "The uniform density is stable" in shown("linear", "--beta", 5, "--diffusion", 0.2)


def test_rates_on_spheres():
    answer = linear("--beta", 0, "--dimension", 3)
    # w_1 = 1/3 on S^2 at beta = 0: lambda_1 = 2/3
    assert answer["modes"][0]["growth_rate"] == pytest.approx(2 / 3, rel=1e-13, abs=0.0)
    assert "exit_time" not in answer


# Bad input


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--vers"], "Error: No such option: --vers"),
        (["slove"], "Error: No such command 'slove'"),
        (["solve", "--bta", "5"], "Error: No such option: --bta"),
        (["solve", "--beta"], "Error: Option '--beta' requires an argument"),
        (["plot"], "Error: Missing argument 'FILE'"),
        (["linear"], "Error: the inverse temperature is missing; give --beta"),
        (["linear", "--beta", "five"], "Error: --beta = 'five' is not a number."),
        (["linear", "--beta", "-1"], "Error: beta = -1 is not allowed; give a number from 0 to"),
        (["linear", "--beta", "nan"], "Error: beta = nan is not allowed"),
        (["linear", "--beta", "5", "--normalization", "x"], "Error: normalization = 'x' is unknown; choose one of"),
        (["linear", "--beta", "5", "--dimension", "1"], "Error: dimension = 1 is not allowed"),
        (["linear", "--beta", "5", "--modes", "0"], "Error: Invalid value for '--modes'"),
        (["linear", "--beta", "800", "--normalization", "none"], "Error: normalization = 'none' at beta = 800"),
        (["solve"], "Error: the inverse temperature is missing; give --beta"),
        (["solve", "--beta", "five"], "Error: --beta = 'five' is not a number."),
        (["solve", "missing.toml"], "Error: run file missing.toml does not exist."),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(arguments, sentence, capfd):
    assert run(arguments) == 2
    shown, told = capfd.readouterr()
    assert shown == ""
    assert told.startswith(sentence)
    assert told.count("\n") == 1


def test_an_error_of_the_program_is_a_traceback_and_code_1(tmp_path):
    code = (
        "import spectral_mf.cli.linear as linear, spectral_mf.cli as cli, spectral_mf.theory as theory, sys\n"
        "theory.dominant_mode = lambda *a, **k: 1 / 0\nsys.argv[1:] = ['linear', '--beta', '5']\ncli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "ZeroDivisionError" in done.stderr


PIPED = [["linear", "--beta", "5"], ["linear", "--beta", "5", "--json"], ["--help"], ["solve", "--help"], ["--version"]]


@pytest.mark.parametrize("arguments", PIPED, ids=" ".join)
def test_a_reader_of_stdout_that_has_gone_is_no_error(arguments):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from spectral_mf.cli import main; main()", *arguments]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_into_head_ends_well():
    program = f"{sys.executable} -u -c 'from spectral_mf.cli import main; main()' linear --beta 5"
    script = f"set -o pipefail; {program} | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("SelfAttention(beta=5.0")
    assert done.stdout.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", PIPED, ids=" ".join)
def test_a_full_stdout_is_one_sentence_and_code_4(arguments):
    command = [sys.executable, "-c", "from spectral_mf.cli import main; main()", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 4
    assert re.fullmatch(r"Error: stdout cannot be written \(.*\); what went to files is whole\.\n", done.stderr)


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that can close stdout")
@pytest.mark.parametrize("arguments", PIPED, ids=" ".join)
def test_a_closed_stdout_is_one_sentence_and_code_4(arguments):
    command = f"{sys.executable} -m spectral_mf {shlex.join(arguments)} >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 4
    assert done.stderr == "Error: stdout cannot be written (it is closed); what went to files is whole.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize("stderr", ["/dev/full", None])
def test_a_run_survives_the_loss_of_stderr(tmp_path, stderr):
    program = f"{sys.executable} -c 'from spectral_mf.cli import main; main()'"
    to = "&-" if stderr is None else stderr
    script = f"{program} solve --beta 5 --modes 3:0.01 --t-end 1 -o run.h5 2>{to}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("run.h5\n")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that can close stdout")
def test_a_run_survives_the_loss_of_stdout(tmp_path):
    script = f"{sys.executable} -m spectral_mf solve --beta 5 --modes 3:0.01 --t-end 1 -o run.h5 >&-"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, "stdout cannot be written (it is closed)" in done.stderr) == (4, True)
    assert len(spectral_mf.Trajectory.load(tmp_path / "run.h5")) == 101

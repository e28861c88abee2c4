"""What is shown of a run that goes on: a bar on a terminal, few lines in a log, nothing when told to be quiet."""

import os
import pty
import re
import subprocess
import sys

import pytest

from spectral_mf.cli import progress
from spectral_mf.cli.progress import reporting

COMMAND = [sys.executable, "-c", "from spectral_mf.cli import main; main()"]
RUN = ("solve", "--beta", "5", "--white-noise", "0.1", "--seed", "3", "--t-end", "1", "--dt", "0.0005", "-o", "run.h5")


def on_a_terminal(folder, *arguments, **variables):
    """Stdout, through a pipe, and what a terminal gets on stderr."""
    environment = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "90", **variables}
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=terminal, text=True
    )
    os.close(terminal)
    screen = b""
    while True:
        try:
            piece = os.read(controller, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        screen += piece
    os.close(controller)
    shown = process.communicate(timeout=60)[0]
    assert process.returncode == 0, screen
    return shown, screen.decode("utf-8")


def test_a_terminal_gets_a_bar_with_time_modes_and_time_left(tmp_path):
    shown, screen = on_a_terminal(tmp_path, *RUN)
    assert re.search(r"t = 0\.\d{3} of 1", screen)
    assert re.search(r"\d+ modes", screen)
    assert "left" in screen
    assert "━" in screen
    assert screen.endswith("\x1b[2K") or screen.rstrip().endswith("\x1b[2K")  # the bar's line is erased in the end
    assert shown.splitlines()[0] == "run.h5"
    assert "\x1b" not in shown


@pytest.mark.parametrize("variables", [{"CI": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_a_terminal_that_cannot_be_drawn_on_gets_plain_lines(tmp_path, variables):
    shown, screen = on_a_terminal(tmp_path, *RUN, **variables)
    assert "\r" not in screen.replace("\r\n", "\n")
    assert "\x1b" not in screen
    assert screen.count("\n") <= 4
    assert shown.splitlines()[0] == "run.h5"


def test_quiet_shows_nothing_on_a_terminal_either(tmp_path):
    assert on_a_terminal(tmp_path, *RUN, "--quiet") == ("run.h5\n", "")


def test_a_log_gets_few_lines(tmp_path):
    done = subprocess.run([*COMMAND, *RUN], cwd=tmp_path, capture_output=True, timeout=60)
    assert b"\r" not in done.stderr
    assert done.stderr.count(b"\n") <= 4


def test_a_log_of_a_day_stays_short(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with reporting(0.0, 7.0, heading="a long run") as report:
        for second in range(86_400):
            now = float(second)
            report(7.0 * second / 86_400, 128, "spectral")
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == ["a long run", "t = 0.000810185 of 7, 128 modes, 10 s"]
    assert len(told) < 20


@pytest.mark.parametrize(
    ("method", "word"),
    [
        ("linear", "modes"),
        ("quasilinear", "modes"),
        ("spectral", "modes"),
        ("characteristics", "nodes"),
        ("atoms", "atoms"),
        ("particles", "tokens"),
    ],
)
def test_a_size_is_called_by_what_carries_the_measure(capsys, monkeypatch, method, word):
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with reporting(0.0, 7.0) as report:
        report(1.0, 64, method)
        now = 11.0
        report(2.0, 65, method)
    assert capsys.readouterr().err == f"t = 2 of 7, 65 {word}, 11 s\n"


def test_the_bar_knows_nodes_from_modes(tmp_path):
    run = ("solve", "--beta", "5", "--modes", "3:0.1", "--t-end", "60")
    shown, screen = on_a_terminal(tmp_path, *run)
    assert re.search(r"\d+ nodes", screen)
    methods, largest = re.search(r"t = 0 to 60, (.*), at most (.*), [\d.]+ s", shown).groups()
    assert methods == "spectral then characteristics then atoms"
    assert re.fullmatch(r"\d+ modes, \d+ nodes, 3 atoms", largest)


def test_what_is_refused_gets_no_heading(capsys):
    with pytest.raises(ValueError, match="refused"), reporting(0.0, 7.0, heading="a run"):
        raise ValueError("refused")
    assert capsys.readouterr().err == ""


def test_a_method_without_steps_gets_its_heading(capsys):
    with reporting(0.0, 7.0, heading="a run"):
        pass
    assert capsys.readouterr().err == "a run\n"


def test_nothing_is_reported_when_quiet(capsys):
    with reporting(0.0, 7.0, heading="a run", quiet=True) as report:
        assert report is None
    assert capsys.readouterr().err == ""

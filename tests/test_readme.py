"""The README does what it says: its quick start runs as printed, in an empty folder, and its set-up is two lines."""

import os
import re
import subprocess
import sysconfig

import pytest

from spectral_mf import Trajectory
from spectral_mf.diagnostics import clusters

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def blocks(checkout):
    return BLOCK.findall((checkout / "README.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One empty folder for all blocks: later ones read what earlier ones wrote."""
    return tmp_path_factory.mktemp("readme")


def run(command, folder):
    scripts = sysconfig.get_path("scripts")
    environment = {**os.environ, "PATH": scripts + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def is_set_up(text):
    return "-m venv" in text


def test_set_up_is_two_commands_of_one_line(blocks):
    commands = [text.strip() for language, text in blocks if language == "sh" and is_set_up(text)]
    assert len(commands) == 2
    assert all(command.startswith("python3 -m venv .venv && ") and "\n" not in command for command in commands)
    assert commands[0].endswith("/spectral-mf demo")
    assert commands[1].endswith("/python -m pytest")


def test_command_line_quick_start(blocks, folder, checkout):
    scripts = [text for language, text in blocks if language == "sh" and not is_set_up(text)]
    assert len(scripts) == 1
    run(["bash", "-euc", scripts[0]], folder)
    assert (folder / "run.h5").stat().st_size > 0
    assert sorted(picture.name for picture in folder.glob("run*.png")) == ["run.clusters.png", "run.png"]
    (merger,) = clusters(Trajectory.load(folder / "run.h5")).mergers
    assert f"(t = {int(merger.t)})" in re.sub(r"\s+", " ", (checkout / "README.md").read_text(encoding="utf-8"))


def test_python_quick_start(blocks, folder):
    pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    program = "\n".join(text for language, text in blocks if language == "python")
    shown = run(["python", "-c", program], folder)
    assert "(101, 2)" in shown
    assert (folder / "three.png").stat().st_size > 0


def test_every_block_is_run(blocks):
    assert {language for language, _ in blocks} == {"sh", "python"}

"""The examples run as they are, in an empty folder, and find what theory says."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest


def run(checkout, folder, name, *options):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, checkout / "examples" / name, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_every_example_is_run(checkout):
    assert {path.name for path in (checkout / "examples").glob("*.py")} == {
        "linear_growth.py",
        "collapse.py",
        "phase_diagram.py",
        "noise.py",
        "common_noise.py",
        "positions.py",
        "heads.py",
        "potentials.py",
        "scaling.py",
    }


def test_linear_growth(checkout, tmp_path):
    shown = run(checkout, tmp_path, "linear_growth.py")
    assert [path.name for path in tmp_path.iterdir()] == ["linear_growth.png"]
    rates = {int(row[0]): float(row[1]) for row in re.findall(r"^ +(\d)  ([\d.]+)", shown, re.MULTILINE)}
    assert rates[3] == pytest.approx(0.6826783336167, abs=1e-6)  # 18.59607030447 / 27.2398718236
    assert rates[4] == pytest.approx(16.34635124 / 27.2398718236, abs=1e-6)
    assert set(rates) == {1, 2, 3, 4, 5, 6}


def test_noise(checkout, tmp_path):
    shown = run(checkout, tmp_path, "noise.py")
    assert [path.name for path in tmp_path.iterdir()] == ["noise.png"]
    critical = [tuple(map(float, pair)) for pair in re.findall(r"from κ = ([\d.]+), I_1/β = ([\d.]+)", shown)]
    assert critical == [(0.7953184273, 0.7953184273), (4.8671284285, 4.8671284285)]
    signs = re.findall(r"cubic coefficient ([+-])", shown)
    assert signs == ["-", "+"]
    (fold,) = re.findall(r"fold at κ = ([\d.]+)", shown)
    assert float(fold) == pytest.approx(5.4259158673, abs=1e-9)
    (rate,) = re.findall(r"κ = 0.6: rate ([\de.-]+)", shown)
    assert float(rate) == pytest.approx(1.498e-8, rel=1e-3)


def test_common_noise(checkout, tmp_path):
    shown = run(checkout, tmp_path, "common_noise.py", "--quick")
    assert [path.name for path in tmp_path.iterdir()] == ["common_noise.png"]
    rows = re.findall(r"energy ([\d.]+) ± ([\d.]+), without attention ([\d.]+)", shown)
    energies, errors, alone = np.array(rows, dtype=float).T
    assert energies.size == 4
    assert (np.diff(energies) > 0.0).all()
    assert (energies > alone).all()
    assert errors[0] == 0.0  # no common noise, no chance


@pytest.mark.slow
def test_heads(checkout, tmp_path):
    shown = run(checkout, tmp_path, "heads.py")
    assert [path.name for path in tmp_path.iterdir()] == ["heads.png"]
    sizes = [float(size) for size in re.findall(r"\|c_1\| = ([\d.]+)", shown)]
    assert sizes[0] == 1.0  # one cluster
    assert max(sizes[1:]) < 0.6  # both ends
    assert [float(size) for size in re.findall(r"\|c_2\| = ([\d.]+)", shown)] == pytest.approx([1.0] * 3, abs=1e-5)
    assert min(float(step) for step in re.findall(r"least step ([\de.+-]+)", shown)) >= 0.0
    errors = [float(error) for error in re.findall(r"β = \d+: ([\d.]+) from", shown)]
    assert errors == pytest.approx([0.036656, 0.019254, 0.0098643, 0.0049922, 0.0025108], rel=3e-5)


@pytest.mark.slow
def test_potentials(checkout, tmp_path):
    shown = run(checkout, tmp_path, "potentials.py")
    assert [path.name for path in tmp_path.iterdir()] == ["potentials.png"]
    errors = [float(error) for error in re.findall(r"\|c_1\| reaches [\d.]+, error ([\de.-]+)", shown)]
    assert len(errors) == 2
    assert max(errors) < 1e-10
    assert "critical noise 0.5 K" in shown
    assert "mode 2 grows fastest, at rate 0.078523" in shown  # 4 (W_2 - κ), W_2 = (sin 1.6 - 1.6 cos 1.6)/(8 π)
    (fall,) = re.findall(r"largest step ([\de.+-]+)", shown)
    assert float(fall) < 0.0
    folds = re.findall(r"radius ([\d.]+): critical noise [\d.]+, folds at ([\w.]+)", shown)
    assert [(radius, at == "none") for radius, at in folds] == [("0.8", False), ("1.1", False), ("2", True)]


def test_phase_diagram(checkout, tmp_path):
    shown = run(checkout, tmp_path, "phase_diagram.py", "--quick")
    assert {path.name for path in tmp_path.iterdir()} == {"phase_diagram.h5", "phase_diagram.png"}
    assert "8 complete, 0 stopped, 0 failed" in shown
    fastest = [int(mode) for mode in re.findall(r"mode (\d) grows fastest", shown)]
    assert fastest == [2, 3, 4, 4, 5, 5, 6, 6]  # near the square root of 2 beta


@pytest.mark.slow
def test_scaling(checkout, tmp_path):
    shown = run(checkout, tmp_path, "scaling.py", "--quick")
    assert (tmp_path / "scaling.png").exists()
    pairs = re.findall(r"^(.+): ([-\d.e+]+), predicted ([-\d.e+]+)$", shown, re.MULTILINE)
    assert len(pairs) == 22
    rates = [(float(a), float(b)) for name, a, b in pairs if name.endswith("rate")]
    assert len(rates) == 4
    assert all(a == pytest.approx(b, rel=1e-3) for a, b in rates)
    (heat,) = (float(a) for name, a, _ in pairs if name.startswith("intermediate: exponent"))
    assert heat == pytest.approx(-1.0, abs=0.01)


def test_collapse(checkout, tmp_path):
    shown = run(checkout, tmp_path, "collapse.py")
    assert {path.name for path in tmp_path.iterdir()} == {
        "collapse.h5",
        "collapse-clusters.png",
        "collapse-staircase.png",
    }
    assert "methods: spectral, then characteristics, then atoms" in shown
    masses = [float(mass) for mass in re.findall(r"mass ([\d.]+)", shown)]
    assert len(masses) == 2
    assert sum(masses) == pytest.approx(1.0, abs=2e-6)
    (merger,) = re.findall(r"two merge at t = ([\d.]+)", shown)
    assert 170.0 < float(merger) < 190.0


def test_positions(checkout, tmp_path):
    shown = run(checkout, tmp_path, "positions.py")
    assert [path.name for path in tmp_path.iterdir()] == ["positions.png"]
    assert "U-shaped until rate x time = 1.2642" in shown  # 2 (1 - 1/e)
    rows = re.findall(
        r"time = ([\d.]+): least influence at s = ([\d.]+); densities ([\d.e-]+), tokens ([\d.e-]+)", shown
    )
    assert [float(row[0]) for row in rows] == [0.5, 1.0, 3.0]
    assert 0.1 < float(rows[0][1]) < float(rows[1][1]) < 0.9
    assert float(rows[2][1]) == 1.0
    assert max(float(row[2]) for row in rows) < 0.02  # windows of positions are 0.015 wide
    assert max(float(row[3]) for row in rows) < 0.07  # there are 200 positions

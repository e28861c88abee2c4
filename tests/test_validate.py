"""`spectral-mf validate`: what it writes, how it goes on, what it refuses, and that it sees a solver that is wrong."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import spectral_mf
from spectral_mf import InputError, StorageError, bessel
from spectral_mf.cli.app import run as spectral_mf_command
from spectral_mf.convolution_fields import ConvolutionFields
from spectral_mf.solvers.spectral import SpectralRightHandSide
from spectral_mf.validation import claims, folder
from spectral_mf.validation.claims import chosen_claims
from spectral_mf.validation.folder import ValidationFolder
from spectral_mf.validation.validate import validate

QUICKEST = "cluster-rates"
"""A claim that takes a tenth of a second."""

SOLVER_CLAIMS = ("reference-solution", "mass-and-energy", "growth-rates", "amplitude-equation")


def run(output, *only, size="--quick"):
    return spectral_mf_command(["validate", size, *(f"--only={name}" for name in only), "-o", str(output)])


def results(output):
    stored = json.loads((output / "claims.json").read_text(encoding="utf-8"))
    return {entry["claim"]: entry for entry in stored["claims"]}


def test_the_folder_holds_report_claims_figures_and_runs(tmp_path, capsys):
    assert run(tmp_path / "v", "reference-solution") == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [str(tmp_path / "v" / "report.html"), "1 of 1 claims hold"]
    assert err.startswith("holds  reference-solution")
    assert sorted(path.name for path in (tmp_path / "v" / "figures").iterdir()) == [
        "reference-solution-error.png",
        "reference-solution-error.svg",
    ]
    entry = results(tmp_path / "v")["reference-solution"]
    assert entry["holds"] is True
    assert entry["parameters"]["rtol"] == 1e-11
    assert len(entry["comparisons"]) == 4
    trajectory = spectral_mf.Trajectory.load(tmp_path / "v" / "runs" / "reference-solution-SA.h5")
    assert trajectory.complete
    assert trajectory.t[-1] == 8.0


def test_seeds_and_versions_are_stored(tmp_path):
    run(tmp_path / "v", "dobrushin")
    stored = json.loads((tmp_path / "v" / "claims.json").read_text(encoding="utf-8"))
    assert stored["versions"]["numpy"] == np.__version__
    assert stored["claims"][0]["seeds"] == {"seed": 7}
    assert "growth-rates" in stored["not_measured"]


def test_what_is_known_is_not_measured_again(tmp_path, monkeypatch):
    run(tmp_path, QUICKEST)
    first = results(tmp_path)[QUICKEST]
    monkeypatch.setattr(claims.Claim, "measure", lambda *_: pytest.fail("measured again"))
    assert run(tmp_path, QUICKEST) == 0
    assert results(tmp_path)[QUICKEST] == first


@pytest.mark.parametrize("damage", ["verdict", "figure", "code"])
def test_what_is_damaged_or_from_other_code_is_measured_again(tmp_path, monkeypatch, damage):
    run(tmp_path, "growth-rates")
    finished = tmp_path / "verdicts" / "growth-rates.json"
    if damage == "verdict":
        finished.write_text(finished.read_text(encoding="utf-8").replace('"holds": true', '"holds": 7', 1)[:500])
    elif damage == "figure":
        (tmp_path / "figures" / "growth-rates-rates.svg").unlink()
    else:
        monkeypatch.setattr(folder, "code_fingerprint", lambda: "other")
        monkeypatch.setattr("spectral_mf.validation.validate.code_fingerprint", lambda: "other")
    measured = []
    measure = claims.Claim.measure
    monkeypatch.setattr(claims.Claim, "measure", lambda self, size: measured.append(self.id) or measure(self, size))
    assert run(tmp_path, "growth-rates") == 0
    assert measured == ["growth-rates"]
    assert (tmp_path / "figures" / "growth-rates-rates.svg").exists()


def test_claims_add_up_over_calls(tmp_path):
    run(tmp_path, QUICKEST)
    run(tmp_path, "wasserstein")
    assert list(results(tmp_path)) == [QUICKEST, "wasserstein"]


def test_an_unknown_claim_touches_nothing(tmp_path, capsys):
    assert run(tmp_path / "v", "growth-rate") == 2
    assert not (tmp_path / "v").exists()
    assert "there is no claim 'growth-rate' (did you mean 'growth-rates'?)" in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert run(tmp_path, QUICKEST) == 2
    assert "holds files that are not of a validation" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_of_the_other_size_is_refused(tmp_path, capsys):
    run(tmp_path, QUICKEST)
    assert run(tmp_path, QUICKEST, size="--full") == 2
    assert "holds a --quick validation, not a --full one" in capsys.readouterr().err


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, capsys):
    (tmp_path / "v").write_text("")
    assert run(tmp_path / "v", QUICKEST) == 2
    assert "is a file; give a folder" in capsys.readouterr().err


def test_two_validations_do_not_share_a_folder(tmp_path):
    held = ValidationFolder(tmp_path, "quick")
    with pytest.raises(StorageError, match="another run is writing"):
        ValidationFolder(tmp_path, "quick")
    held.close()
    ValidationFolder(tmp_path, "quick").close()


def test_a_label_of_another_format_is_refused(tmp_path):
    (tmp_path / "validation.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="another version"):
        ValidationFolder(tmp_path, "quick")


def test_a_check_that_breaks_is_a_claim_that_fails_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    def broken(p):
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr("spectral_mf.validation.checks.clusters.cluster_rates", broken)
    assert run(tmp_path, QUICKEST, "wasserstein") == 1
    known = results(tmp_path)
    assert known["wasserstein"]["holds"]
    assert "ZeroDivisionError in broken: of a test" in known[QUICKEST]["sentence"]
    assert "Traceback" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1 of 2 claims hold; fails: cluster-rates" in capsys.readouterr().out


def test_an_interruption_keeps_what_is_measured(tmp_path, monkeypatch):
    def interrupt(p):
        raise KeyboardInterrupt

    monkeypatch.setattr("spectral_mf.validation.checks.tokens.w1_closed_forms", interrupt)
    with pytest.raises(KeyboardInterrupt):
        validate(chosen_claims([QUICKEST, "wasserstein"]), "quick", tmp_path)
    assert list(results(tmp_path)) == [QUICKEST]
    monkeypatch.undo()
    assert run(tmp_path, QUICKEST, "wasserstein") == 0


@pytest.mark.slow
def test_a_validation_that_was_killed_goes_on(tmp_path):
    """SIGKILL after the first verdict; the second call keeps that and measures the rest."""
    command = [sys.executable, "-m", "spectral_mf.cli", "validate", "-o", str(tmp_path / "v")]
    command[1:3] = ["-c", "from spectral_mf.cli import main; main()"]
    only = [f"--only={name}" for name in ("wasserstein", "mass-and-energy", "periodicity")]
    going = subprocess.Popen([*command, *only], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    kept = tmp_path / "v" / "verdicts" / "mass-and-energy.json"
    for _ in range(600):
        if kept.exists():
            break
        time.sleep(0.05)
    os.kill(going.pid, signal.SIGKILL)
    going.wait()
    before = kept.read_bytes()
    done = subprocess.run([*command, *only], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert kept.read_bytes() == before
    assert set(results(tmp_path / "v")) == {"wasserstein", "mass-and-energy", "periodicity"}


def _ratios(change):
    """Patch of both kernel series: k and value to the changed value."""

    def patched(original):
        return lambda k, beta: change(np.asarray(k), original(k, beta))

    return patched


def rate_off_by_two_percent(patch):
    off = _ratios(lambda k, value: np.where(k == 3, 1.02, 1.0) * value)
    patch.setattr(bessel, "derivative_ratio", off(bessel.derivative_ratio))


def kernel_cut_after_its_fourth_mode(patch):
    cut = _ratios(lambda k, value: np.where(k > 4, 0.0, 1.0) * value)
    patch.setattr(bessel, "derivative_ratio", cut(bessel.derivative_ratio))
    patch.setattr(bessel, "ratio", cut(bessel.ratio))


def mass_leak(patch):
    right = SpectralRightHandSide.__call__

    def leaking(self, c, out):
        right(self, c, out)
        out[..., 0] -= 1e-3 * c[..., 0]

    patch.setattr(SpectralRightHandSide, "__call__", leaking)


def no_softmax_denominator(patch):
    evaluate = ConvolutionFields.evaluate

    def undivided(self, moments):
        mass, self._mass = self._mass, None
        evaluate(self, moments)
        self._mass = mass

    patch.setattr(ConvolutionFields, "evaluate", undivided)


def test_a_right_solver_passes(tmp_path):
    assert run(tmp_path, *SOLVER_CLAIMS) == 0


@pytest.mark.parametrize(
    ("mutant", "seen_by"),
    [
        (rate_off_by_two_percent, {"growth-rates", "reference-solution"}),
        (mass_leak, {"mass-and-energy", "reference-solution"}),
        (kernel_cut_after_its_fourth_mode, {"growth-rates", "amplitude-equation", "reference-solution"}),
        (no_softmax_denominator, {"amplitude-equation", "reference-solution"}),
    ],
)
def test_a_wrong_solver_fails(tmp_path, monkeypatch, mutant, seen_by):
    """By what was measured, not by an exception: every one of these claims has comparisons outside their range."""
    mutant(monkeypatch)
    assert run(tmp_path, *SOLVER_CLAIMS) == 1
    failing = {name for name, entry in results(tmp_path).items() if not entry["holds"] and not entry["error"]}
    assert failing >= seen_by

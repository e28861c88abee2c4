"""The command `sweep`, and what the other commands say of its files."""

import json
from pathlib import Path

import pytest

from spectral_mf.cli import sweep_progress
from spectral_mf.cli.app import run
from spectral_mf.cli.sweep_progress import duration, sentence
from spectral_mf.storage.publishing import Claim
from spectral_mf.sweep import CaseResult, SweepPlan, SweepProgress
from spectral_mf.sweep.journal import Journal, journal_of

PLAN = """
[grid]
model.beta = [1.0, nan]
initial.seed = [0, 1]
[initial]
white_noise = 0.1
[time]
t_end = 1.0
dt = 0.5
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_failures_are_said_and_the_others_are_kept(folder, capsys):
    assert run(["sweep", "plan.toml", "--workers", "1"]) == 3
    shown = capsys.readouterr()
    assert shown.out.startswith("plan.h5\n4 cases, 2 complete, 2 failed, ")
    assert shown.err.splitlines() == [
        "4 cases on 1 worker; the time that they take is estimated when the first are finished.",
        "2 cases: beta = nan is not allowed; give a number from 0 to 1e+06.",
    ]
    assert run(["info", "plan.h5"]) == 0
    assert capsys.readouterr().out.startswith("plan.h5: sweep, 4 cases, 2 complete, 2 failed\n")
    assert run(["info", "plan.h5", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert (known["cases"], known["complete"], known["axes"]["seed"]["count"]) == (4, True, 2)
    assert run(["plot", "plan.h5"]) == 2
    assert "holds a sweep, not a run" in capsys.readouterr().err
    assert run(["sweep", "plan.toml"]) == 2
    assert "plan.h5 exists" in capsys.readouterr().err


def test_info_says_how_far_an_unfinished_sweep_has_come(folder, capsys):
    plan = SweepPlan.from_toml("plan.toml")
    journal = Journal.create(journal_of(folder / "s.h5"), plan.identity)
    journal.append([CaseResult(2, "failed", "why", {})])
    journal.close()
    assert run(["info", "s.h5"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("s.h5: unfinished sweep, 4 cases, 1 failed, 3 to come\n")
    assert "1 x why" in shown
    assert "--output s.h5 --resume" in shown
    assert "stopped before its end" in shown
    claim = Claim(folder / "s.h5")
    try:
        assert run(["info", "s.h5"]) == 0
        shown = capsys.readouterr().out
        assert run(["info", "s.h5", "--json"]) == 0
    finally:
        claim.release()
    assert "status    running" in shown
    assert "--resume" not in shown
    assert json.loads(capsys.readouterr().out)["being_written"] is True


def test_what_is_left_of_an_earlier_sweep_is_neither_replaced_nor_a_riddle(folder, capsys):
    journal = Journal.create(journal_of(folder / "s.h5"), SweepPlan.from_toml("plan.toml").identity)
    journal.append([CaseResult(2, "failed", "why", {})])
    journal.close()
    assert run(["sweep", "plan.toml", "--output", "s.h5"]) == 2
    assert (
        "1 finished case of an earlier sweep; add --resume to go on with it, or add --overwrite"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("after", [0, 1])
def test_an_interrupted_sweep_says_what_is_kept(folder, capsys, monkeypatch, after):
    def interrupted(plan, output, function, **options):
        if after:
            journal = Journal.create(journal_of(Path(output)), plan.identity)
            journal.append([CaseResult(2, "failed", "why", {})])
            journal.close()
        raise KeyboardInterrupt

    monkeypatch.setattr("spectral_mf.solvers.sweep.carry_out", interrupted)
    assert run(["sweep", "plan.toml", "--output", "s.h5"]) == 130
    shown = capsys.readouterr().err
    command = "'spectral-mf sweep plan.toml --output s.h5"
    if after:
        assert f"1 finished case is kept in s.h5.cases; {command} --resume' goes on." in shown
    else:
        assert f"No case was finished yet, so nothing is kept; {command}' begins anew." in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.toml"], "sweep file none.toml does not exist"),
        (["plan.toml", "--workers", "0"], "workers = 0 is not allowed"),
        (["plan.toml", "--output", "no/s.h5"], "does not exist"),
        (["plan.toml", "--scheduler", "nonsense"], "'nonsense'"),
    ],
)
def test_bad_input_is_one_sentence(folder, capsys, arguments, words):
    assert run(["sweep", *arguments]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["plan.toml"]


def test_progress_says_rate_and_time_left():
    assert sentence(SweepProgress(0, 10, 0, 0.0, float("inf"))) == "0 of 10 cases"
    assert sentence(SweepProgress(4, 1000, 1, 5.0, 199.2)) == ("4 of 1000 cases, 1 failed, 5 a second, 3 min 20 s left")
    assert [duration(s) for s in (0.2, 59.5, 3661.0)] == ["1 s", "1 min 0 s", "1 h 1 min"]


def test_a_log_begins_with_the_number_of_cases_and_then_has_the_estimate(monkeypatch, capsys):
    clock = iter([0.0, 1.0, 11.0, 20.0, 23.0])
    monkeypatch.setattr(sweep_progress.time, "monotonic", lambda: next(clock))
    lines = sweep_progress._Lines()
    lines(SweepProgress(0, 400, 0, 0.0, float("inf"), 2))
    for finished in (1, 20, 40, 60):
        lines(SweepProgress(finished, 400, 0, 5.0, (400 - finished) / 5.0, 2))
    assert capsys.readouterr().err.splitlines() == [
        "400 cases on 2 workers; the time that they take is estimated when the first are finished.",
        "20 of 400 cases, 5 a second, 1 min 16 s left",
        "60 of 400 cases, 5 a second, 1 min 8 s left",
    ]

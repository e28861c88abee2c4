"""Sweeps: many runs over a grid of parameters, in one file with a dimension for each.

`spectral_mf.solvers.solve_sweep` solves one; here is what it is made of. `SweepPlan` says what to compute, `bundles`
sends cases to `workers`, `journal` keeps what is finished, `sweep_file` puts all in one file, and `carry_out` holds
these together.
"""

from spectral_mf.sweep.carry_out import SweepProgress, carry_out
from spectral_mf.sweep.plan import SweepPlan
from spectral_mf.sweep.results import CaseResult
from spectral_mf.sweep.sweep_file import SweepSummary, is_sweep, read_sweep

__all__ = ["CaseResult", "SweepPlan", "SweepProgress", "SweepSummary", "carry_out", "is_sweep", "read_sweep"]

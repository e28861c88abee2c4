"""Phases of runs whose phases are known: f^alpha, hand-made covers, tokens."""

import numpy as np
import pytest

from spectral_mf import FourierDensity, SelfAttention, solve
from spectral_mf.validation.phases import find_phases

USA = SelfAttention(5.0, "none")
RATE = 18.596070304472047


def reference_run(alpha, t_end, phase=0.0, rows=201, model=USA):
    start = FourierDensity.from_modes({3: np.pi * alpha * np.exp(1j * phase)})
    return solve(model, start, np.linspace(0.0, t_end, rows))


@pytest.mark.parametrize(("alpha", "passage"), [(0.01, 0.12369), (0.001, 0.24771)])
def test_quasilinear_phase_of_f_alpha_ends_at_the_published_passage_of_the_level(alpha, passage):
    phases = find_phases(reference_run(alpha, 0.5))
    assert phases.quasilinear.state == "ended"
    assert phases.quasilinear.end == pytest.approx(passage, abs=1.5e-5)
    assert phases.measured_exit == phases.quasilinear.end
    assert phases.predicted_exit == pytest.approx(np.log(0.3 / (np.pi * alpha)) / RATE, rel=1e-12)

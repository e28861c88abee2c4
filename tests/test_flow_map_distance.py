"""Distances of a collapsed density: panels of negligible mass, which nobody resolves, must not move the mass beside."""

import numpy as np
import pytest

from spectral_mf import Atoms, FourierDensity, SelfAttention, solve


@pytest.mark.parametrize("k3", [0.003j, 0.001 + 0.002j])
def test_w1_after_the_collapse_is_that_of_the_labels(k3):
    run = solve(SelfAttention(2.0), FourierDensity.from_modes({2: 0.01, 3: k3}), [0.0, 20.0, 25.0], rtol=1e-8)
    final = run.measure(2)
    assert final.kind == "flow_map"  # not yet points, so that there are panels between the clusters
    atoms = final.to_atoms()
    for other in (FourierDensity.uniform(), Atoms([0.3, 2.0])):
        assert final.w1(other) == pytest.approx(atoms.w1(other), abs=1e-4)
    moments = np.abs(final.moments(2))
    assert moments[2] == pytest.approx(1.0, abs=0.01)

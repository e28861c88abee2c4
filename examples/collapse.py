"""Through the collapse: three clusters form, two of them merge, and the energy rises in steps. SA at β = 5.

Writes collapse.h5, collapse-clusters.png and collapse-staircase.png to the current folder.
"""

import numpy as np

from spectral_mf import FourierDensity, SelfAttention, diagnostics, solve

model = SelfAttention(beta=5.0)
start = FourierDensity.from_modes({3: 0.01, 2: 0.003, 4: 0.002j})
times = np.concatenate([np.linspace(0.0, 20.0, 81), np.geomspace(21.0, 1e4, 100)])

run = solve(model, start, times, output="collapse.h5", overwrite=True)
print("methods:", ", then ".join(dict.fromkeys(str(name) for name in run.method)))

history = diagnostics.clusters(run)
life = history.lifetime(3)
print(f"three clusters from t = {life.formed:.2f} to t = {life.ended:.1f}")
for merger in history.mergers:
    print(f"two merge at t = {merger.t:.2f}")
last = history.rows[-1]
for position, mass in zip(last.positions, last.masses, strict=True):
    print(f"at t = {run.t[-1]:g}: a cluster of mass {mass:.6f} at theta = {position:.6f}")
for jump in diagnostics.energy_staircase(run, history=history).jumps:
    print(f"the energy jumps by {jump.height:.3f} of a single point's at t = {jump.t:.2f}")

run.plot("clusters").savefig("collapse-clusters.png", dpi=150)
run.plot("staircase").savefig("collapse-staircase.png", dpi=150)

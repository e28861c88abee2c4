"""Do small perturbations of the uniform density grow as linear theory says? SA at β = 5, six modes at once.

Writes linear_growth.png to the current folder.
"""

import numpy as np
from matplotlib.figure import Figure

from spectral_mf import FourierDensity, SelfAttention, solve, theory

model = SelfAttention(beta=5.0)
k = np.arange(1, 7)
start = FourierDensity.from_modes({int(mode): 1e-8 for mode in k})

run = solve(model, start, 5.0, method="spectral")  # the nonlinear equation
growth = np.abs(run.moments[:, k])
measured = np.log(growth[-1] / growth[0]) / run.t[-1]
predicted = theory.growth_rate(model, k)

print("mode  measured      k² I_k / (β I_0)  difference")
for row in zip(k, measured, predicted, measured - predicted, strict=True):
    print("{:4d}  {:.9f}   {:.9f}       {:+.1e}".format(*row))

figure = Figure(figsize=(5.0, 3.5), layout="constrained")
ax = figure.subplots()
for mode, values in zip(k, growth.T, strict=True):
    ax.semilogy(run.t, values, label=f"k = {mode}")
ax.set_prop_cycle(None)
ax.semilogy(run.t, 1e-8 * np.exp(np.outer(run.t, predicted)), "k--", linewidth=0.8)
ax.set_xlabel("time t")
ax.set_ylabel("$|c_k|$ (dashed: linear theory)")
ax.legend()
figure.savefig("linear_growth.png", dpi=150)

"""What does common noise do to attention? Mean energy against its strength σ, with and without attention.

All tokens feel the same noise of the plane, -σ sin θ ∘ dB_1 + σ cos θ ∘ dB_2, and little noise of their own. Writes
common_noise.png to the current folder.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from spectral_mf import BrownianPath, FourierDensity, PairPotential, SelfAttention, VectorFields, solve_common_noise
from spectral_mf.plotting import plot_density
from spectral_mf.solvers import solve_common_noise_ensemble

quick = "--quick" in sys.argv[1:]
n_paths, kappa = (16 if quick else 128), 0.1
model = SelfAttention(4.0, diffusion=kappa)
alone = PairPotential((0.0, 0.0), diffusion=kappa)
start = FourierDensity.from_modes({1: 0.02, 2: 0.02j, 3: 0.02})
point, uniform = model.energy(np.ones(65)), model.energy(np.eye(1, 65)[0])
sigmas = np.linspace(0.0, 1.2, 4 if quick else 9)
times = [0.0, 1.0, 3.0, 6.0]
paths = BrownianPath.draw_many(n_paths, 2, times[-1], 96, seed=1)


def share(energy):
    """0 for the uniform density, 1 for all mass in one point."""
    return (energy - uniform) / (point - uniform)


figure = Figure(figsize=(10.0, 3.8), layout="constrained")
figure.get_layout_engine().set(wspace=0.06)
left, right = figure.subplots(1, 2)

run = solve_common_noise(model, start, VectorFields.planar(0.8), paths[0], np.linspace(0.0, 6.0, 241), rtol=1e-8)
plot_density(run, ax=left)
left.set_title("Density on one path, σ = 0.8", loc="left")

means, errors, free = [], [], []
for sigma in sigmas:
    fields = VectorFields.planar(sigma)
    ensemble = solve_common_noise_ensemble(model, start, fields, paths, times, rtol=1e-5)
    means.append(share(ensemble.mean_energy))
    errors.append(ensemble.energy_error / (point - uniform))
    without = solve_common_noise_ensemble(alone, start, fields, paths, times, rtol=1e-5)
    free.append(share(model.energy(without.moments).mean(axis=0)))
    print(
        f"σ = {sigma:.2f}: mean energy {means[-1][-1]:.4f} ± {errors[-1][-1]:.4f}, without attention {free[-1][-1]:.4f}"
    )
means, errors, free = np.array(means), np.array(errors), np.array(free)
for i, colour in zip((1, 2, 3), ("tab:blue", "tab:green", "tab:orange"), strict=True):
    right.errorbar(
        sigmas, means[:, i], errors[:, i], color=colour, marker="o", markersize=3.0, label=f"t = {times[i]:g}"
    )
    right.plot(sigmas, free[:, i], color=colour, linestyle="--", linewidth=1.0)
right.plot([], [], color="0.4", linestyle="--", linewidth=1.0, label="without attention")
right.set(xlabel="strength σ of the common noise", ylabel="mean energy (uniform 0, a point 1)")
right.set_title(f"SA, β = 4, κ = {kappa:g}, {n_paths} paths", loc="left")
right.legend()
figure.savefig("common_noise.png", dpi=150)

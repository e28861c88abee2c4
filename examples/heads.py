"""What do query, key and value matrices do? One direction wins, or both ends of it; values turned round diffuse.

White dotted lines: the directions that win. Writes heads.png to the current folder.
"""

import numpy as np
from matplotlib.figure import Figure

from spectral_mf import AttentionHead, FourierDensity, MultiHeadAttention, solve
from spectral_mf.plotting import plot_density

figure = Figure(figsize=(10.0, 6.5), layout="constrained")
axes = figure.subplots(2, 2)

direction = 0.7
turn = np.array([[np.cos(direction), -np.sin(direction)], [np.sin(direction), np.cos(direction)]])
start = FourierDensity.von_mises(1.0, 0.0)
cases = (
    ("λ = 2, -0.3; β = 0.2: one cluster", (2.0, -0.3), 0.2, 12.0),
    ("λ = 2, -0.3; β = 2: both ends", (2.0, -0.3), 2.0, 4.0),
    ("λ = -0.4, -1.5; β = 2: antipodal clusters", (-0.4, -1.5), 2.0, 8.0),
)
for ax, (title, eigenvalues, beta, t_end) in zip(axes.flat, cases, strict=False):
    matrix = turn @ np.diag(eigenvalues) @ turn.T
    model = MultiHeadAttention([AttentionHead(matrix, matrix, beta)])
    run = solve(model, start, np.linspace(0.0, t_end, 121), rtol=1e-8)
    plot_density(run, ax=ax)
    for angle in (direction, direction + np.pi):
        ax.axhline((angle + 0.5 * np.pi * (eigenvalues[0] < 0.0)) % (2.0 * np.pi), color="white", ls=":", lw=0.8)
    ax.set_title(title, loc="left")
    print(f"{title}: |c_1| = {abs(run.moments[-1, 1]):.6f}, |c_2| = {abs(run.moments[-1, 2]):.6f}", end="; ")
    print(f"energy {run.energy[0]:.6g} to {run.energy[-1]:.6g}, least step {np.diff(run.energy).min():.1e}")

identity = np.eye(2)
k = np.arange(41)
normals = np.exp(-0.08 * k**2) * np.exp(-1j * np.outer([0.8, 2.5, 4.5], k)).mean(axis=0)
theta = 2.0 * np.pi * np.arange(256) / 256
heat = FourierDensity(normals * np.exp(-0.05 * k**2)).density(theta)
betas, errors = (25, 50, 100, 200, 400), []
for beta in betas:
    model = MultiHeadAttention([AttentionHead(identity, -identity, beta)])
    run = solve(model, FourierDensity(normals), [0.0, 0.05 * beta], method="spectral", rtol=1e-8)
    errors.append(2.0 * np.pi * np.abs(run.density(theta)[1] - heat).mean())
    print(f"V = -I, β = {beta}: {errors[-1]:.5g} from the heat flow")
axes[1, 1].loglog(betas, errors, "o-")
axes[1, 1].loglog(betas, np.array(betas, dtype=float) ** -1, ":", color="black", label="1/β")
axes[1, 1].set_title("V = -I: distance from the heat flow", loc="left")
axes[1, 1].set(xlabel="β", ylabel="L1 error at t = 0.05 β")
axes[1, 1].set_xticks(betas, [str(beta) for beta in betas])
axes[1, 1].set_yticks([0.003, 0.01, 0.03], ["0.003", "0.01", "0.03"])
axes[1, 1].minorticks_off()
axes[1, 1].legend()
figure.savefig("heads.png", dpi=110)

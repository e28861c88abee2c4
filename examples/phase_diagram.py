"""How many clusters are there at which β, and when? 200 values of β, from one perturbation of the uniform density. SA.

Every β starts from the same weak noise; as β grows, a higher mode wins, and more clusters form. Writes phase_diagram.h5
and phase_diagram.png to the current folder; with --quick, 8 values of β.
"""

import sys

import h5py
import numpy as np
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from spectral_mf.solvers import solve_sweep

quick = "--quick" in sys.argv[1:]
PLAN = {
    "grid": {"model": {"beta": {"start": 2.5 if quick else 0.1, "stop": 20.0, "count": 8 if quick else 200}}},
    "initial": {"white_noise": 0.3, "seed": 1},
    "time": {"t_end": 10.0, "dt": 0.1},
    "solver": {"rtol": 1e-6},
}

if __name__ == "__main__":  # workers import this file
    done = solve_sweep(PLAN, "phase_diagram.h5", overwrite=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in done.outcomes.items()))

    with h5py.File("phase_diagram.h5") as file:
        beta, t = file["beta"][:], file["time"][:]
        counts, k_max = file["n_clusters"][:], file["k_max"][:]
        left = file["exit_time"][:]
    for row in range(0, beta.size, max(1, beta.size // 8)):
        print(f"beta = {beta[row]:5.2f}: mode {k_max[row]} grows fastest, {counts[row, -1]} clusters at t = {t[-1]:g}")

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    ax = figure.subplots()
    most = int(counts.max())
    colours = BoundaryNorm(np.arange(-0.5, most + 1.0), 256)
    picture = ax.pcolormesh(t, beta, counts, cmap="viridis", norm=colours, shading="nearest")
    ax.plot(left, beta, color="white", linewidth=1.0, label="linear phase ends: largest $|c_k| = 0.1$")
    ax.set(xlim=(0.0, t[-1]), xlabel="time t", ylabel="inverse temperature β")
    ax.legend(loc="upper left", facecolor="grey", labelcolor="white", fontsize="small")
    figure.colorbar(picture, ticks=range(most + 1), label="clusters")
    figure.savefig("phase_diagram.png", dpi=150)

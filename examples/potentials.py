"""Other pair potentials: Kuramoto oscillators, and opinions of bounded confidence (Hegselmann-Krause).

Without noise and with it, against closed forms. Writes potentials.png to the current folder.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy.special import i0, i1

from spectral_mf import FourierDensity, PairPotential, solve, theory
from spectral_mf.plotting import plot_density
from spectral_mf.solvers import continue_branch, stationary_state

figure = Figure(figsize=(11.0, 6.5), layout="constrained")
axes = figure.subplots(2, 2)

# Kuramoto, W = K cos θ: a Poisson kernel stays one, and r²/(1 - r²) grows like e^{K t}
poisson = FourierDensity(0.05 ** np.arange(12))
for strength, colour in ((1.0, "tab:blue"), (2.0, "tab:orange")):
    run = solve(PairPotential.kuramoto(strength), poisson, np.linspace(0.0, 10.0, 41))
    r = np.abs(run.moments[:, 1])
    grown = 0.05**2 / (1.0 - 0.05**2) * np.exp(strength * run.t)
    exact = np.sqrt(grown / (1.0 + grown))
    print(f"K = {strength:g}: |c_1| reaches {r[-1]:.6f}, error {np.abs(r - exact).max():.1e}")
    axes[0, 0].plot(run.t, r, "o", markersize=3.0, color=colour, label=f"K = {strength:g}")
    axes[0, 0].plot(run.t, exact, color="black", lw=0.8)
axes[0, 0].set(xlabel="time t", ylabel="$|c_1|$", title="Kuramoto: order without noise")
axes[0, 0].legend()

# with noise, order is lost at K/2; r = I_1/I_0(K r/κ) below
noises = np.linspace(0.05, 0.49, 23)
orders = []
for kappa in noises:
    state = stationary_state(PairPotential.kuramoto(1.0, kappa), FourierDensity.von_mises(2.0))
    orders.append(state.order_parameter)
a = np.linspace(1e-3, 40.0, 4000)  # K r/κ
axes[0, 1].plot(noises, orders, "o", markersize=3.0, label="stationary")
axes[0, 1].plot(i1(a) / i0(a) / a, i1(a) / i0(a), color="black", lw=0.8, label="$r = I_1/I_0(K r/κ)$")
axes[0, 1].set(xlim=(0.0, 0.55), xlabel="noise κ / K", ylabel="stationary $|c_1|$", title="Kuramoto: order with noise")
axes[0, 1].legend()
print(f"Kuramoto: critical noise {theory.critical_noise(PairPotential.kuramoto(1.0)):.12g} K")

# bounded confidence: clusters first, which then exchange mass until one is left
model = PairPotential.hegselmann_krause(radius=0.8, strength=1.0, diffusion=0.022, kept_modes=64)
dominant = theory.dominant_mode(model)
print(f"Hegselmann-Krause, radius 0.8, κ = 0.022: mode {dominant.mode} grows fastest, at rate {dominant.rate:.6f}")
run = solve(model, FourierDensity.white_noise(0.3, 200, seed=3), np.geomspace(1.0, 1601.0, 161) - 1.0, rtol=1e-6)
plot_density(run, ax=axes[1, 0])
axes[1, 0].set_title("", loc="left")
axes[1, 0].set_title("Hegselmann-Krause, r = 0.8, κ = 0.022")
values = [theory.free_energy(model, run.measure(i)) for i in range(len(run))]
print(f"free energy from {values[0]:.6f} to {values[-1]:.6f}, largest step {np.diff(values).max():.1e}")

# short range: the transition jumps; long range: it is continuous
for radius, colour in ((0.8, "tab:blue"), (1.1, "tab:orange"), (2.0, "tab:green")):
    critical = theory.critical_noise(PairPotential.hegselmann_krause(radius))
    model = PairPotential.hegselmann_krause(radius, 1.0, 1.1 * critical, kept_modes=64)
    uniform = continue_branch(
        stationary_state(model, FourierDensity.uniform()),
        "diffusion",
        (0.9 * critical, 1.2 * critical),
        increasing=False,
    )
    clusters = continue_branch(uniform.of_kind("branch")[0], "diffusion", (0.7 * critical, 1.5 * critical))
    shown, stable = clusters.values / critical, clusters.stable
    for part, style in ((stable, "-"), (~stable, "--")):
        part = part.copy()
        part[:-1] |= part[1:] & ~part[:-1]  # no gap where stability changes
        axes[1, 1].plot(np.where(part, shown, np.nan), clusters.order_parameter, style, color=colour)
    axes[1, 1].plot([], [], color=colour, label=f"r = {radius:g}")
    folds = [f"{fold.value / critical:.6f}" for fold in clusters.of_kind("fold")]
    print(f"radius {radius:g}: critical noise {critical:.10f}, folds at {', '.join(folds) or 'none'}")
axes[1, 1].axvline(1.0, color="black", ls=":", lw=0.8)
axes[1, 1].set(xlabel="noise κ / $W_1$", ylabel="$c_1$", title="Hegselmann-Krause: one cluster (dashed: unstable)")
axes[1, 1].legend()
figure.savefig("potentials.png", dpi=110)

"""How does the uniform density give way when noise falls? USA below and above β* = 2.4469, by continuation.

Then two equal clusters, which noise lets exchange mass over exponentially long times. Writes noise.png to the current
folder.
"""

import numpy as np
from matplotlib.figure import Figure

from spectral_mf import FourierDensity, SelfAttention, solve
from spectral_mf.critical_noise import critical_noise, cubic_coefficient, tricritical_beta
from spectral_mf.solvers.continuation import continue_branch
from spectral_mf.solvers.stationary import stationary_state

figure = Figure(figsize=(10.0, 6.5), layout="constrained")
axes = figure.subplots(2, 2)

print(f"β* = {tricritical_beta():.12f}")
for ax, beta in zip(axes[0], (2.0, 5.0), strict=True):
    critical = critical_noise(SelfAttention(beta, "none"))
    start = stationary_state(SelfAttention(beta, "none", 1.3 * critical), FourierDensity.uniform())
    uniform = continue_branch(start, "diffusion", (0.6 * critical, 1.4 * critical), increasing=False)
    first = uniform.of_kind("branch")[0]
    clusters = continue_branch(first, "diffusion", (0.6 * critical, 1.4 * critical))
    print(f"β = {beta:g}: stable from κ = {first.value:.10f}, I_1/β = {critical:.10f}", end="; ")
    print(f"cubic coefficient {cubic_coefficient(first.state.model):+.6f}")
    for branch, colour in ((uniform, "tab:gray"), (clusters, "tab:blue")):
        r = branch.order_parameter
        for stable, style in ((True, "-"), (False, "--")):
            shown = branch.stable == stable
            shown[:-1] |= shown[1:] & ~shown[:-1]  # no gap where stability changes
            ax.plot(np.where(shown, branch.values, np.nan), r, style, color=colour)
    for fold in clusters.of_kind("fold"):
        print(f"  fold at κ = {fold.value:.10f}, r = {fold.state.order_parameter:.6f}")
        ax.axvspan(first.value, fold.value, color="tab:orange", alpha=0.2, linewidth=0.0, label="both stable")
        ax.plot(fold.value, fold.state.order_parameter, "o", color="tab:orange")
        ax.legend(loc="center left")
    ax.plot(first.value, 0.0, "o", color="tab:gray")
    ax.set(xlabel="noise κ", ylabel="order parameter $c_1$", title=f"β = {beta:g} (dashed: unstable)")

noises = np.linspace(3.3, 0.6, 28)
guess = FourierDensity.from_function(lambda theta: np.exp(2.0 * np.cos(2.0 * theta)))
rates = []
for kappa in noises:
    two = stationary_state(SelfAttention(5.0, "none", kappa), guess, fold=2)
    even, odd = two.eigenvalues()
    rates.append((even[0], odd[0]))
    guess = two.density
axes[1, 0].semilogy(1.0 / noises, rates, label=["exchange of mass", "approach"])
axes[1, 0].axhline(np.exp(-5.0), color="black", linestyle=":", linewidth=0.8, label="approach without noise, $e^{-β}$")
axes[1, 0].set(xlabel="1/κ", ylabel="growth rate", title="Two equal clusters, β = 5")
axes[1, 0].legend()
print(f"exchange of mass at κ = {noises[-1]:.1f}: rate {rates[-1][0]:.4e}")

two = stationary_state(SelfAttention(5.0, "none", 2.5), FourierDensity.from_modes({2: 0.6, 4: 0.3, 6: 0.1}), fold=2)
start = two.density.moments(64)
start[1] = 1e-3
run = solve(two.model, FourierDensity(start), np.linspace(0.0, 20.0, 101), method="spectral")
at = np.array([0.0, np.pi])
peaks = np.array([run.measure(i).density(at) for i in range(len(run))])
axes[1, 1].plot(run.t, peaks, label=["at θ = 0", "at θ = π"])
axes[1, 1].set(xlabel="time t", ylabel="density p(θ)", title="One grows at the cost of the other, κ = 2.5")
axes[1, 1].legend()
figure.savefig("noise.png", dpi=150)

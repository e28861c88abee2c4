"""Which positions move the last token? Causal attention with distance decay, near the uniform density.

At first the earliest and the latest positions do, and the middle is lost; later, the earlier a position the more.
Lines: closed form; crosses: the equation for densities; dots: tokens. Writes positions.png to the current folder.
"""

import numpy as np
from matplotlib.figure import Figure

from spectral_mf.position_grid import PositionGrid
from spectral_mf.position_theory import influence, u_shape_limit
from spectral_mf.positions import PositionalAttention
from spectral_mf.solvers.positional import solve_linear_positions
from spectral_mf.validation.positional_tokens import move_tokens_with_positions

model = PositionalAttention(beta=1.0, normalization="none", order="causal", decay=1.0)
rate = float(model.attention.growth_rate(1))  # of mode 1, without positions
growths = (0.5, 1.0, 3.0)  # rate x time

# Densities: perturb narrow windows of positions, and look at position 1.
grid, centres, width = PositionGrid(256), np.arange(0.1, 0.95, 0.1), 0.015
windows = np.exp(-0.5 * ((grid.nodes[:, None] - centres) / width) ** 2)
windows /= grid.weights @ windows
ends = solve_linear_positions(model, windows, 1, np.array(growths) / rate, grid)
last = (grid.interpolation([1.0])[0] @ (ends - windows)).real  # shape (growths, windows)

# Tokens: 24 at each of 200 positions; perturb those at one position.
n_positions, n_angles, size = 200, 24, 1e-5
phi = 2.0 * np.pi * np.arange(n_angles) / n_angles
positions = np.repeat(np.arange(1, n_positions + 1) / n_positions, n_angles)
places = np.arange(9, n_positions, 20)


def response(place):
    """Moment c_1 of the last tokens at all times, for those at one position perturbed by c_1 = size."""
    angles = np.tile(phi, (n_positions, 1))
    angles[place] -= 2.0 * size * np.sin(phi)
    times = [0.0, *(np.array(growths) / rate)]
    run = move_tokens_with_positions(model, angles.ravel(), times, positions=positions, rtol=1e-12)
    moved = run.angles[1:, -n_angles:] - phi
    return -n_positions * (moved * np.sin(phi)).mean(axis=1) / size


tokens = np.array([response(place) for place in places]).T

print(f"U-shaped until rate x time = {u_shape_limit(model.decay):.4f}")
s = np.linspace(0.01, 1.0, 1000)
figure = Figure(figsize=(5.5, 3.8), layout="constrained")
ax = figure.subplots()
for growth, dots, crosses in zip(growths, tokens, last, strict=True):
    total = np.expm1(growth)  # influence of all positions together
    exact = influence(s, growth, model.decay)
    lowest = s[np.argmin(exact)]
    worst = np.abs(crosses / influence(centres, growth, model.decay) - 1.0).max()
    far = np.abs(dots / influence(positions[places * n_angles], growth, model.decay) - 1.0).max()
    print(
        f"rate x time = {growth:4.2f}: least influence at s = {lowest:.2f}; densities {worst:.1e}, tokens {far:.1e} off"
    )
    (line,) = ax.plot(s, exact / total, label=f"$a\\,t = {growth:g}$")
    ax.plot(positions[places * n_angles], dots / total, "o", color=line.get_color(), markersize=4)
    ax.plot(centres, crosses / total, "x", color="black", markersize=6)
for marker, colour, kind in (("x", "black", "densities"), ("o", "0.5", "tokens")):
    ax.plot([], [], marker, color=colour, markersize=5, label=kind)
ax.set_ylim(0.0, 3.0)
ax.set_xlabel("position s")
ax.set_ylabel("share of the influence on the last position")
ax.legend(title="$a$: rate of mode 1")
figure.savefig("positions.png", dpi=150)

"""The equation itself: mass, energy, and a solution that two independent methods agree on."""

from __future__ import annotations

import numpy as np

from spectral_mf import FourierDensity, SelfAttention, solve
from spectral_mf.data import reference
from spectral_mf.trajectory import Trajectory
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import colours, legend, panel
from spectral_mf.validation.findings import Finding, Picture, at_least, at_most


def _reference_run(case: str, t_end: float, rtol: float) -> tuple[Trajectory, np.ndarray, np.ndarray]:
    """A run from a reference case's start through its output times, with its moments c_0 .. c_12 and energies."""
    table = reference(case)
    modes = {int(k): complex(*value) for k, value in table["initial_moments"].items()}
    rows = [row for row in table["rows"] if row["t"] <= t_end]
    model = SelfAttention(table["beta"], table["normalization"])
    times = [0.0, *(row["t"] for row in rows)]
    run = solve(model, FourierDensity.from_modes(modes), times, rtol=rtol)
    moments = np.array([[complex(*value) for value in row["moments"]] for row in rows])
    return run, moments, np.array([row["energy"] for row in rows])


def reference_solution(p: Parameters) -> Finding:
    """Moments from the linear phase through the collapse are those of two other, independent methods."""
    comparisons, runs = [], {}
    with panel() as (figure, ax):
        for case, t_end, colour in zip(p.cases, p.t_ends, colours(len(p.cases)), strict=True):
            run, moments, energy = _reference_run(case, t_end, p.rtol)
            error = np.abs(run.moments[1:, : moments.shape[1]] - moments).max(axis=1)
            name = "SA" if run.model.to_dict()["normalization"] == "softmax" else "USA"
            deviation = np.abs(run.energy[1:] / energy - 1.0).max()
            comparisons += [
                at_most(
                    f"largest error of c_0 … c_12, {name}, t ≤ {run.t[-1]:g}",
                    error.max(),
                    p.tolerance,
                    predicted=0.0,
                    rule=f"at most {p.tolerance:g}",
                ),
                at_most(
                    f"largest relative error of the energy, {name}",
                    deviation,
                    p.tolerance,
                    predicted=0.0,
                    rule=f"at most {p.tolerance:g}",
                ),
            ]
            runs[name] = run
            rate = float(run.model.growth_rate(3))
            ax.plot(rate * run.t[1:], np.maximum(error, 1e-16), "o-", color=colour, markersize=4.0, label=name)
        ax.set_yscale("log")
        ax.set_xlabel("time in units of $1/\\lambda_{max}$")
        ax.set_ylabel("largest error of $c_0 .. c_{12}$")
        ax.set_title("Distance from the reference solution")
        legend(ax)
    return Finding(
        f"The largest error of a moment is {max(c.measured for c in comparisons):.1g}.",
        comparisons,
        [
            Picture(
                "error",
                figure,
                "Error of the first twelve moments against time, SA and USA.",
                "β = 5, from a perturbation of 1% through the collapse into clusters.",
            )
        ],
        runs,
    )


def mass_and_energy(p: Parameters) -> Finding:
    """The total mass stays 1, and the energy never falls."""
    comparisons = []
    with panel() as (figure, ax):
        for normalization, t_end, colour in zip(("softmax", "none"), p.t_ends, colours(2), strict=True):
            name = "SA" if normalization == "softmax" else "USA"
            model = SelfAttention(p.beta, normalization)
            start = FourierDensity.from_modes({int(k): value for k, value in p.modes.items()})
            run = solve(model, start, np.linspace(0.0, t_end, p.rows), rtol=p.rtol)
            loss = np.abs(run.mass - 1.0).max()
            integral = np.abs(run.cells.mean(axis=1) * 2.0 * np.pi - 1.0).max()
            fall = np.diff(run.energy).min() / run.energy[-1]
            balance = np.abs(run.energy_rate_residual) / np.abs(np.gradient(run.energy, run.t)).max()
            known = balance[np.isfinite(balance)]
            comparisons += [
                at_most(f"|mass - 1|, {name}", loss, p.mass_tolerance, predicted=0.0),
                at_most(
                    f"|integral of the density - 1|, {name}",
                    integral,
                    p.mass_tolerance,
                    predicted=0.0,
                ),
                at_least(
                    f"smallest change of E between rows / E, {name}",
                    fall,
                    -p.energy_tolerance,
                    predicted=0.0,
                ),
                at_most(
                    f"|dE/dt - dissipation| / largest dE/dt, {name}",
                    known.max(),
                    p.balance_tolerance,
                    predicted=0.0,
                ),
            ]
            ax.plot(run.t / t_end, run.energy / run.energy[-1], color=colour, label=f"{name}, to t = {t_end:g}")
        ax.set_xlabel("time / last time")
        ax.set_ylabel("energy / last energy")
        ax.set_title("Interaction energy")
        legend(ax)
    return Finding(
        f"The mass changes by at most {max(c.measured for c in comparisons if 'mass' in c.quantity):.1g}.",
        comparisons,
        [Picture("energy", figure, "Energy against time, rising in SA and USA.", "It rises as clusters form.")],
    )

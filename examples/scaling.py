"""How do times and distances scale with β and with the number of tokens? Seven sweeps, each against its theory.

Runs the recipes in the folder scaling beside this file (results that are in the current folder are read), prints
measured beside predicted values, and writes scaling.png to the current folder. With --quick, a few cases of each.
"""

import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
from matplotlib.figure import Figure

from spectral_mf.solvers import solve_sweep
from spectral_mf.sweep import SweepPlan
from spectral_mf.validation.checks import scaling_laws as laws
from spectral_mf.validation.crossings import first_fall, smooth_rise

quick = "--quick" in sys.argv[1:]
RECIPES = Path(__file__).parent / "scaling"
KEPT = {  # by --quick, along the first axis
    "exit-times": slice(1),
    "fast": slice(3),
    "intermediate": slice(3),
    "log-n": slice(6),
    "low-temperature": slice(2),
    "single-cluster": slice(4, None),
    "slow": slice(3),
}
LARGE, SMALL = 2.0, 1.0  # eigenvalues of query_key
MEAN, VARIANCE = 0.2, 0.05  # of normal.csv
ANGLE = math.pi / 3  # of pair.csv and one-of-*.csv
THEORY = {"color": "0.35", "linewidth": 1.0, "linestyle": (0, (4, 2.5))}


def shorter(axis, kept):
    """An axis with some of its values, and what is tied to it likewise."""
    tied = tuple(shorter(one, kept) for one in axis.tied)
    return replace(axis, values=axis.values[kept], labels=axis.labels[kept], tied=tied)


def results(name):
    """Axes by name, moments and exit times of a recipe; they are computed unless their file is there."""
    path = Path(f"{name}.h5")
    if not path.exists():
        plan = SweepPlan.from_toml(RECIPES / f"{name}.toml")
        if quick:
            plan = replace(plan, axes=(shorter(plan.axes[0], KEPT[name]), *plan.axes[1:]))
        solve_sweep(plan, path, workers=1 if quick else None)
    with h5py.File(path) as file:
        axes = {key: file[key].asstr()[:] if file[key].dtype == object else file[key][:]
                for key in file if file[key].ndim == 1}  # fmt: skip
        return axes, file["moment_real"][...] + 1j * file["moment_imag"][...], file["exit_time"][...]


def betas_of(heads):
    """β of each list of one head."""
    return np.array([json.loads(text)[0]["beta"] for text in heads])


def show(what, measured, predicted):
    """A measured value beside the predicted one."""
    print(f"{what}: {measured:.5g}, predicted {predicted:.5g}")


def single_cluster(ax):
    """Exponential decay of 1 - |c_1|."""
    axes, moments, _ = results("single-cluster")
    lost = 1.0 - np.abs(moments[..., 1])
    for i, beta in enumerate(axes["beta"]):
        for j, normalization in enumerate(axes["normalization"]):
            for k, start in enumerate(axes["initial"]):
                name = f"{'SA' if normalization == 'softmax' else 'USA'}, {start}"
                rate = laws.single_cluster_rate(normalization, beta, points=start == "tokens")
                measured = laws.decay_rate(axes["time"], lost[i, j, k], *laws.WINDOWS[start])
                show(f"1 - |c_1|, {name}, β = {beta:g}: rate", measured, rate)
                if i == axes["beta"].size - 1:
                    ax.semilogy(axes["time"], np.maximum(lost[i, j, k], 1e-16), label=f"{name}: {rate:.3g}")
    ax.set(title=f"To one cluster, β = {axes['beta'][-1]:g}", xlabel="time t", ylabel="1 - $|c_1|$", ylim=(1e-13, 1e6))
    ax.legend(title="rates predicted", fontsize="x-small", title_fontsize="small", ncols=2, columnspacing=0.8)


def first_order(ax, betas, errors, name, title):
    """Draws errors against β beside 1/β, and shows their exponent."""
    show(f"{name}: exponent of β in what finite β adds", laws.limit_exponent(betas, errors), -1.0)
    ax.loglog(betas, errors, "o-")
    ax.loglog(betas, errors[-1] * betas[-1] / betas, **THEORY, label="1/β")
    ax.set(title=title, xlabel="β", ylabel="distance from the limit")
    ax.set_xticks(betas, [f"{beta:g}" for beta in betas])
    ax.set_xticks([], minor=True)
    ax.legend()


def fast(ax, phases):
    """Alignment in a time of order 1."""
    axes, moments, _ = results("fast")
    betas, t, c = betas_of(axes["heads"]), axes["time"], moments[..., 2].real
    limit = laws.aligned_moment(LARGE, SMALL, t[-1])
    show(f"fast: c_2 at t = {t[-1]:g}, β = {betas[-1]:g}", c[-1, -1], limit)
    first_order(ax, betas, np.abs(c[:, -1] - limit), "fast", "Fast: alignment, $c_2$ at t = 2")
    times = [float(np.interp(0.3, row, t)) for row in c]
    show(f"fast: time until c_2 = 0.3, β = {betas[-1]:g}", times[-1], laws.alignment_time(LARGE, SMALL, 0.3))
    phases.loglog(betas, times, "o-", label="fast: until $c_2 = 0.3$")


def intermediate(ax, phases):
    """The heat equation in a time of order β."""
    axes, moments, _ = results("intermediate")
    betas, s = betas_of(axes["heads"]), axes["time"]  # s = t/β
    row = int(np.argmin(np.abs(s - 0.5)))
    heat = moments[0, 0, 2] * np.exp(-4.0 * s[row])
    first_order(ax, betas, np.abs(moments[:, row, 2] - heat), "intermediate", "Intermediate: V = -I, $c_2$ at t = β/2")
    times = [beta * first_fall(s, np.abs(c[:, 1]), 0.5 * abs(c[0, 1])) for beta, c in zip(betas, moments, strict=True)]
    show(f"intermediate: time in which c_1 is halved / β, β = {betas[-1]:g}", times[-1] / betas[-1], math.log(2.0))
    phases.loglog(betas, times, "o-", label="intermediate: $c_1$ halved")


def lifetime(t, size):
    """Time in which the angle of two clusters is halved, from |c_1| in time."""
    w = laws.pair_angles(size, ANGLE)
    end = int(np.argmax(w < 0.9 * ANGLE / laws.HALVED))
    return smooth_rise(t[:end], 1.0 / w[:end], laws.HALVED / ANGLE)


def slow(ax, phases):
    """Two clusters approach in a time exponential in β."""
    axes, moments, _ = results("slow")
    betas = axes["beta"]
    times = [lifetime(axes["time"], np.abs(c[:, 1])) for c in moments]
    predicted = [laws.pair_lifetime(beta, 0.5, ANGLE) for beta in betas]
    show(f"slow: lifetime, β = {betas[-1]:g}", times[-1], predicted[-1])
    slope, expected = (np.log(x[-1] / x[-2]) / (betas[-1] - betas[-2]) for x in (times, predicted))
    show("slow: last slope of ln lifetime in β, tending to 1/2", slope, expected)
    ax.semilogy(betas, times, "o", label="measured")
    ax.semilogy(betas, predicted, **THEORY, label="quadrature")
    ax.set(title="Slow: two clusters π/3 apart", xlabel="β", ylabel="lifetime")
    ax.legend()
    phases.loglog(betas, times, "o-", label="slow: two clusters merge")


def log_n(ax):
    """One token among n, β = γ ln n: the time in which it is half as far."""
    axes, moments, _ = results("log-n")
    n = np.array([int(re.findall(r"\d+", name)[0]) for name in axes["tokens"]])
    gamma = np.rint(axes["beta"] / np.log(n))
    times = np.array([lifetime(axes["time"], np.abs(c[:, 1])) for c in moments])
    for value in np.unique(gamma):
        here = gamma == value
        predicted = [laws.pair_lifetime(value * math.log(size), 1.0 / size, ANGLE) for size in n[here]]
        show(f"β = {value:g} ln n: lifetime of one token among {n[here][-1]}", times[here][-1], predicted[-1])
        exponent, expected = (laws.exponents(n[here], y)[-1] for y in (times[here], predicted))
        limit = max(0.0, value * (1.0 - math.cos(ANGLE)) - 1.0)
        show(f"β = {value:g} ln n: last exponent in n, tending to {limit:g}", exponent, expected)
        ax.loglog(n[here], times[here], "o", label=f"γ = {value:g}")
        ax.loglog(n[here], predicted, **THEORY)
    ax.set(title="β = γ ln n: one token and n - 1", xlabel="n", ylabel="lifetime")
    ax.legend()


def low_temperature(ax):
    """Where a cluster stops, and when."""
    axes, moments, _ = results("low-temperature")
    betas, c = betas_of(axes["heads"]), moments[..., 1]
    angles = np.abs(np.angle(c[:, -1]))
    predicted = np.array([laws.frozen_angle(beta, LARGE, SMALL, MEAN, VARIANCE) for beta in betas])
    show(f"low temperature: distance where the cluster stops, β = {betas[-1]:g}", angles[-1], predicted[-1])
    show("low temperature: last exponent of β in it, tending to -1/2",
         laws.exponents(betas, angles)[-1], laws.exponents(betas, predicted)[-1])  # fmt: skip
    widths = -2.0 * np.log(np.abs(c)) * betas[:, None] * LARGE
    times = np.array([first_fall(axes["time"], width, 1.0) for width in widths])
    expected = np.array([laws.freezing_time(beta, LARGE, SMALL, VARIANCE) for beta in betas])
    slopes = [np.diff(x)[-1] / np.log(betas[-1] / betas[-2]) for x in (times, expected)]
    show("low temperature: last slope in ln β of the time when it stops, tending to 1", *slopes)
    ax.loglog(betas, angles, "o", label="stops at this angle")
    ax.loglog(betas, predicted, **THEORY)
    ax.loglog(betas, times, "s", label="at this time")
    ax.loglog(betas, expected, **THEORY)
    ax.set(title="Low temperature, V = I", xlabel="β")
    ax.legend()


def exit_times(ax):
    """Exit from the uniform density, β = ln N."""
    axes, moments, times = results("exit-times")
    n, betas = axes["uniform_tokens"], axes["beta"]
    predicted = np.array(
        [[laws.linear_exit(b, np.abs(c[0, 1:]), 0.1) for b, c in zip(betas, row, strict=True)] for row in moments]
    )
    show("β = ln N: largest difference of an exit time from linear theory", np.abs(times - predicted).max(), 0.0)
    slope, expected = (np.polyfit(np.log(n), x.mean(axis=0), 1)[0] for x in (times, predicted))
    show("β = ln N: slope of the mean exit time in ln N", slope, expected)
    for row in times:
        ax.semilogx(n, row, ".", color="C0")
    ax.semilogx(n, times.mean(axis=0), "o", color="C3", label=f"mean of {len(times)}")
    ax.semilogx(n, predicted.mean(axis=0), **THEORY, label="linear theory")
    last = times.mean(axis=0)[-1]
    ax.semilogx(n, last + math.e / 4 * np.log(n / n[-1]), ":", color="C2", label="slope e/4")
    ax.set(title="β = ln N: exit of random tokens", xlabel="N", ylabel="exit time")
    ax.legend()


if __name__ == "__main__":  # workers import this file
    figure = Figure(figsize=(14.0, 6.6), layout="constrained")
    (one, two, three, four), (five, six, seven, eight) = figure.subplots(2, 4)
    fast(one, four)
    intermediate(two, four)
    slow(three, four)
    four.set(title="Times of the three phases", xlabel="β", ylabel="time", ylim=(0.5, 1e4))
    four.legend(fontsize="small", loc="upper left")
    single_cluster(five)
    log_n(six)
    low_temperature(seven)
    exit_times(eight)
    figure.savefig("scaling.png", dpi=100)

"""Clusters of one measure: one definition for smooth densities, collapsed ones, and point masses.

The measure is seen through a Gaussian of standard deviation h, the resolution: its moments are multiplied by
e^{-h² k²/2}. A cluster is a peak of what is seen that stands out by at least `prominence` times the uniform density
1/(2 pi) above the higher of the two lows that part it from higher peaks. The lows between neighbouring clusters part
the circle, so that the masses of the clusters sum to 1. A cluster's position is the mean of its core, the mass around
its peak where more than the uniform density is seen: of a broad part the mean of all mass may lie in a trough.
Position, mass and width are those of the measure itself, not of what is seen: a cluster far narrower than h keeps its
digits.

A uniform density, and one with ripples of less than `prominence`, has no cluster. A peak of any height counts if it
stands out: seen through h a point of mass m stands m √(2 pi) / h times the uniform density high, so that at the default
h = 0.05 points from mass 0.02 are clusters. Two equal points are one when they are closer than 2 h.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft, signal

from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.clusters import Clusters
from spectral_mf.errors import InputError
from spectral_mf.flow_map import FlowMap
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.measure import Measure
from spectral_mf.model import Model

FloatArray = NDArray[np.float64]

RESOLUTION = 0.05
"""Width h (radians) through which a measure is seen, unless asked otherwise."""

PROMINENCE = 1.0
"""By how much a cluster stands out, in units of the uniform density 1/(2 pi)."""

_FINEST, _COARSEST = 1e-5, 1.0
_MODES_SEEN = 8.0
"""h k beyond which the Gaussian e^{-h² k²/2} is rounding."""

_POINTS_PER_MODE = 8
_CELLS_PER_POINT = 4
_CENTRAL = (0.15865525393145705, 0.8413447460685429)
"""Levels of the quantiles that lie one standard deviation either side of the middle of a Gaussian."""

_FLAT = 1e-10
"""What is seen below this share of its peak is rounding: the gap between collapsed clusters."""

_NEGATIVE_SEEN = 0.1
"""What is seen may be negative by this share of the prominence: more is ringing of moments that were cut off."""


def default_resolution(model: Model) -> float:
    """Width h through which a model's solutions are seen: 0.05, or 1 / bandwidth if its kernel is sharper.

    For self-attention the bandwidth is about 9 √β, and clusters form at distances of 4.4 / √β.
    """
    return min(RESOLUTION, 1.0 / model.bandwidth)


def find_clusters(measure: Measure, *, resolution: float = RESOLUTION, prominence: float = PROMINENCE) -> Clusters:
    """Number, positions, masses and widths of the clusters of a measure.

    Parameters
    ----------
    measure : Measure
        Modes, flow map or atoms.
    resolution : float
        Width h in radians through which the measure is seen, from 1e-5 to 1.
    prominence : float
        By how much a cluster stands out, in units of the uniform density; > 0.

    Returns
    -------
    Clusters
        In order of position; none if nothing stands out. `positions` are means of the mass of each cluster's core, in
        [0, 2 pi), where more than the uniform density is seen; `masses` sum to 1; `widths` are half the distance of the
        quantiles 0.159 and 0.841 of that mass: the standard deviation of a Gaussian, and 0 for a single point. Tails,
        which are the last to collapse, do not count. Densities of modes are cut into cells of h / 40, which is enough
        for what so few modes resolve.

    Raises
    ------
    InputError
        If an argument is out of range, or the measure is known by too few moments to be seen at this resolution.
    """
    _check(resolution, prominence)
    seen = seen_density(measure, resolution)
    if -seen.min() > _NEGATIVE_SEEN * prominence:
        known = len(measure.to_vector()) // 2 - 1
        raise InputError(
            f"{known} moments do not tell this measure's clusters at a resolution of {resolution:.3g} rad; use a "
            f"resolution of at least {5.0 / max(known, 5):.2g}."
        )
    peaks = _peaks(seen, prominence)
    if not peaks.size:
        none = np.empty(0)
        return Clusters(none, none, none)
    n_cells = _CELLS_PER_POINT * seen.size
    angles, masses = _points(measure, n_cells)
    lows = _lows(seen, peaks)
    step = TWO_PI / seen.size
    cores = step * _cores(seen, peaks, lows, prominence)
    cell = TWO_PI / n_cells if isinstance(measure, FourierDensity) else 0.0
    bounds, places = (each.astype(np.float64) * step for each in (lows, peaks))
    return _parts(angles, masses, cell, bounds, places, cores)


def seen_density(measure: Measure, resolution: float) -> FloatArray:
    """The measure seen through a Gaussian, in units of the uniform density, at equal distances from theta = 0 on.

    Parameters
    ----------
    measure : Measure
    resolution : float
        Standard deviation h of the Gaussian, in radians.

    Returns
    -------
    ndarray of float64, shape (n,)
        n is at least 64 / h.
    """
    n_modes = int(np.ceil(_MODES_SEEN / resolution))
    k = np.arange(n_modes + 1)
    seen = measure.moments(n_modes) * np.exp(-0.5 * (resolution * k) ** 2)
    n = int(fft.next_fast_len(_POINTS_PER_MODE * n_modes, real=True))
    return np.asarray(fft.irfft(seen, n=n, norm="forward"), dtype=np.float64)


def _check(resolution: float, prominence: float) -> None:
    if not _FINEST <= resolution <= _COARSEST:
        raise InputError(
            f"resolution = {resolution:g} rad is not allowed; give a number from {_FINEST:g} to {_COARSEST:g}."
        )
    if not 0.0 < prominence < np.inf:
        raise InputError(f"prominence = {prominence:g} is not allowed; give a number > 0, in uniform densities.")


def _peaks(seen: FloatArray, prominence: float) -> NDArray[np.int64]:
    """Grid points of the peaks, increasing; the circle is cut at its lowest point, so that every peak is inside."""
    lowest = int(seen.argmin())
    around = np.append(np.roll(seen, -lowest), seen[lowest])
    found, _ = signal.find_peaks(around, prominence=prominence)
    return np.sort((np.asarray(found, dtype=np.int64) + lowest) % seen.size)


def _lows(seen: FloatArray, peaks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Grid point of the lowest value after each peak, the middle one where it is flat; may pass the grid's end."""
    floor = np.maximum(seen, _FLAT * seen.max())
    ends = np.append(peaks[1:], peaks[0] + seen.size)
    lows = np.empty_like(peaks)
    for j, (start, end) in enumerate(zip(peaks, ends, strict=True)):
        values = floor[np.arange(start, end) % seen.size]
        lowest = np.flatnonzero(values == values.min())
        lows[j] = start + lowest[lowest.size // 2]
    return lows


def _cores(seen: FloatArray, peaks: NDArray[np.int64], lows: NDArray[np.int64], prominence: float) -> FloatArray:
    """Ends of what is seen around each peak above the uniform density, in grid steps from it; shape (n_peaks, 2).

    A peak that is itself no higher, as a prominence below 1 lets in, has a core down to half the prominence below it.
    """
    starts = np.append(lows[-1] - seen.size, lows[:-1])
    cores = np.empty((peaks.size, 2))
    for core, peak, start, end in zip(cores, peaks, starts, lows, strict=True):
        level = 1.0 if seen[peak] > 1.0 else float(seen[peak]) - 0.5 * prominence
        core[0] = -_reach(seen[np.arange(peak, start - 1, -1) % seen.size], level)
        core[1] = _reach(seen[np.arange(peak, end + 1) % seen.size], level)
    return cores


def _reach(values: FloatArray, level: float) -> float:
    """How far values stay above a level, > 0; interpolated in the logarithm, as flanks fall like a Gaussian's."""
    below = np.flatnonzero(values <= level)
    if not below.size:
        return float(values.size - 1)
    i = int(below[0])
    after = max(float(values[i]), _FLAT * level)
    return float(i - np.log(level / after) / np.log(values[i - 1] / after))


def _points(measure: Measure, n_cells: int) -> tuple[FloatArray, FloatArray]:
    """The measure as point masses: its own nodes, or cells where it is smooth."""
    if isinstance(measure, FlowMap):
        measure = measure.to_atoms()
    if isinstance(measure, Atoms):
        return measure.angles, measure.weights
    masses = np.maximum(measure.cell_means(n_cells), 0.0)
    return TWO_PI * np.arange(n_cells) / n_cells, masses / masses.sum()


def _parts(
    angles: FloatArray, masses: FloatArray, cell: float, bounds: FloatArray, peaks: FloatArray, cores: FloatArray
) -> Clusters:
    """Mean of the core, mass and width of the points between bounds, which increase and span at most one turn."""
    cut = bounds[-1] % TWO_PI
    x = (angles - cut) % TWO_PI
    order = np.argsort(x, kind="stable")
    x, w = x[order], masses[order]
    ends = np.searchsorted(x, (bounds[:-1] - cut) % TWO_PI)
    found = []
    parts = zip(np.append(0, ends), np.append(ends, x.size), (peaks - cut) % TWO_PI, cores, strict=True)
    for start, end, peak, core in parts:
        inside, weight = x[start:end], w[start:end]
        mass = float(weight.sum())
        if mass <= 0.0:
            continue
        levels = (np.cumsum(weight) - 0.5 * weight) / mass
        low, high = np.interp(_CENTRAL, levels, inside - inside[weight.argmax()])
        found.append(((_mean(inside, weight, cell, peak, core) + cut) % TWO_PI, mass, 0.5 * (high - low)))
    positions, masses, widths = np.array(sorted(found)).T
    return Clusters(positions, masses, widths)


def _mean(x: FloatArray, w: FloatArray, cell: float, peak: float, core: FloatArray) -> float:
    """Mean of the points in a core, each spread over a cell; the peak itself where there are none."""
    low, high = np.maximum(x - 0.5 * cell, peak + core[0]), np.minimum(x + 0.5 * cell, peak + core[1])
    w = w * (np.clip((high - low) / cell, 0.0, 1.0) if cell else high >= low)
    if not (w > 0.0).any():
        return peak
    x = 0.5 * (low + high) if cell else x  # of a cell at the end of the core, the middle of what is inside
    middle = x[w.argmax()]
    return float(middle + w @ (x - middle) / w.sum())  # differences, so that nearly equal angles keep their digits

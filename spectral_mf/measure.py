"""What every representation of a probability measure on the circle can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


@runtime_checkable
class Measure(Protocol):
    """A probability measure on the circle, whatever carries it: modes, point masses, or a flow map.

    Attributes
    ----------
    kind : str
        Name of the representation in files.
    """

    kind: ClassVar[str]

    def moments(self, n_modes: int) -> ComplexArray:
        """Moments c_k = int exp(-i k theta) dmu, k = 0 .. n_modes; shape (n_modes + 1,)."""

    def density(self, theta: ArrayLike) -> FloatArray:
        """Density p with respect to d theta, at angles in radians; it integrates to 1."""

    def cell_means(self, n_cells: int) -> FloatArray:
        """Mean density over each cell [theta_j - pi/n, theta_j + pi/n], theta_j = 2 pi j / n; shape (n_cells,)."""

    def energy(self, model: Model) -> float:
        """Interaction energy under a model, in units of exp(model.energy_log_unit)."""

    def w1(self, other: Measure) -> float:
        """Wasserstein-1 distance on the circle (geodesic), in radians."""

    def to_vector(self) -> FloatArray:
        """Everything needed to make the measure again, bit for bit, as one float64 vector for storage."""

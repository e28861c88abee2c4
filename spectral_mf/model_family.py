"""Several models at once, one for each of as many densities that are solved together."""

from __future__ import annotations

from collections.abc import Sequence

from spectral_mf.arguments import check_model
from spectral_mf.convolution_fields import ConvolutionFields, ConvolutionModel
from spectral_mf.errors import InputError
from spectral_mf.model import Model


class ModelFamily:
    """Models that differ in their parameters, each for one density; the transforms of all are one.

    Parameters
    ----------
    models : sequence of Model
        `SelfAttention`, or `PairPotential`: all with the softmax or all without, and of the same diffusion.

    Raises
    ------
    InputError
        If they cannot be solved together.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        for model in models:
            check_model(model)
        convolutions = tuple(model for model in models if isinstance(model, ConvolutionModel))
        if not convolutions or len(convolutions) < len(models):
            raise InputError(
                "models that are solved together have one kernel of the difference of angles each; give SelfAttention "
                "or PairPotential, and solve others one by one."
            )
        if len({model.kernels.shape[0] for model in convolutions}) > 1:
            raise InputError(
                "models with and without softmax cannot be solved together; give one call for each normalization."
            )
        if len({model.diffusion for model in models}) > 1:
            raise InputError(
                "models of different diffusion cannot be solved together; give one call for each diffusion."
            )
        self._models = convolutions
        self.diffusion = models[0].diffusion
        self.bandwidth = max(model.bandwidth for model in models)

    def grid_fields(self, n_points: int, fold: int = 1, n_densities: int = 1) -> ConvolutionFields:
        """Make an evaluator for as many densities as there are models."""
        if n_densities != len(self._models):
            raise InputError(f"{n_densities} densities under {len(self._models)} models; give one model for each.")
        return ConvolutionFields(self._models, n_points, fold)

"""Which stored runs can be gone on with, and what to do with those that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

COMMON_NOISE = ("common noise", "common-noise particles")
"""What one Brownian path moves."""

_AGAIN = {
    "common-noise particles": "spectral_mf.validation.common_noise_tokens.simulate_common_noise",
    "particles": "spectral_mf.validation.particles.simulate",
    "layers": "spectral_mf.validation.particles.simulate",
    "noisy particles": "spectral_mf.validation.noisy_particles.simulate_noisy",
}
"""What makes a run of another kind again."""


POSITIONS_NOT_RESUMED = (
    "a run with positions cannot be resumed; solve its run file again to the later time, with --overwrite or another "
    "--output, or call spectral_mf.solve_positions again."
)
"""Why a run with positions is not gone on with, and what to do instead."""


def why_not_resumed(configuration: Mapping[str, Any], *, complete: bool) -> str | None:
    """Why a run cannot be resumed, and what to do instead, in one sentence; None if it can.

    Parameters
    ----------
    configuration : mapping
        As stored with the run.
    complete : bool
        Whether it has reached its end.
    """
    method = str(configuration.get("method"))
    if method == "common noise":
        end = float(configuration["path"]["t_end"])
        if not complete or configuration["times"][-1] < end:
            return None
        return (
            f"the run has come to the end of its path, t = {end:g}, and cannot be resumed; solve again on a path with "
            "a later t_end."
        )
    if method not in _AGAIN:
        return None
    if method in COMMON_NOISE:
        return (
            f"a run of tokens cannot be resumed; call {_AGAIN[method]} again, on the stored path: "
            'BrownianPath.from_dict(trajectory.configuration["path"]).'
        )
    return f"a run of tokens cannot be resumed; call {_AGAIN[method]} again, from the same tokens."


def moment_now() -> str:
    """The time of day in UTC, as files have it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"

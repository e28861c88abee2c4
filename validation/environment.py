"""What a measurement was made with: versions of the libraries, and the machine."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from spectral_mf import __version__

_LIBRARIES = ("numpy", "scipy", "pyfftw", "finufft", "h5py", "matplotlib")


@cache
def versions() -> dict[str, str]:
    """Versions by name: spectral_mf, Python, and the libraries that are installed."""
    found = {"spectral_mf": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """Operating system, processor type and number of cores, in words."""
    cores = os.cpu_count() or 1
    return f"{platform.system()} on {platform.machine()}, {cores} core{'s' if cores > 1 else ''}"

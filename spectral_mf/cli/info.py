"""info."""

from spectral_mf.cli.options import RunFile


def info(file: RunFile) -> None:
    """Describe."""

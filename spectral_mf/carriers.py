"""What carries a measure in a run, in words: modes, nodes, atoms or tokens, by the method in use."""

from __future__ import annotations

from collections.abc import Iterable

_OF_POINTS = {"characteristics": "nodes", "atoms": "atoms", "particles": "tokens", "layers": "tokens"}


def carriers_of(method: str) -> str:
    """What a method counts as its size."""
    return _OF_POINTS.get(method, "modes")


def carriers_in_use(methods: Iterable[str], sizes: Iterable[int]) -> dict[str, tuple[int, int]]:
    """Least and largest size of each kind, in order of first use.

    Parameters
    ----------
    methods, sizes : iterable
        Method and size at each time.
    """
    found: dict[str, tuple[int, int]] = {}
    for method, size in zip(methods, sizes, strict=True):
        kind = carriers_of(str(method))
        low, high = found.get(kind, (size, size))
        found[kind] = min(low, int(size)), max(high, int(size))
    return found

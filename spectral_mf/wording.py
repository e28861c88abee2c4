"""Counted things in words."""

from __future__ import annotations


def counted(number: int, things: str) -> str:
    """A number of things, given in the plural: `1 token`, `2 tokens`."""
    return f"{number} {things.removesuffix('s') if number == 1 else things}"

"""Run the comparisons, print one table, and write JSON where asked."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measure import Comparison, Cost, Skipped

BENCHMARKS = {
    "right-hand-side": "benchmarks.right_hand_side",
    "transform-share": "benchmarks.transform_share",
    "batches": "benchmarks.batches",
    "numpy": "benchmarks.numpy_solve",
    "diffrax": "benchmarks.diffrax_solve",
    "dedalus": "benchmarks.dedalus_solve",
    "lax-friedrichs": "benchmarks.lax_friedrichs",
    "particles": "benchmarks.particle_rhs",
    "million-tokens": "benchmarks.million_tokens",
    "through-collapse": "benchmarks.through_collapse",
    "costs": "benchmarks.costs",
    "sweep": "benchmarks.sweep",
}
"""Module by name; each has `run()`, which yields comparisons."""

NAME_WIDTH = 52

LIBRARIES = ("spectral_mf", "numpy", "scipy", "pyfftw", "finufft", "jax", "diffrax", "dedalus")


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; return 1 if a promised ratio was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = ", ".join(BENCHMARKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {known} (default: all)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results there too")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose from {known}")

    results: list[Comparison | Cost | Skipped] = []
    print(f"{'':{NAME_WIDTH}} {'ours':>9} {'theirs':>9}  {'ratio (quartiles)':32} error (ours, theirs) or difference")
    for name in options.names or BENCHMARKS:
        for result in import_module(BENCHMARKS[name]).run():
            results.append(result)
            print(_line(result), flush=True)
    if options.json:
        document = {"machine": _machine(), "results": [result.to_dict() for result in results]}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        print(f"written to {options.json}")
    comparisons = [result for result in results if isinstance(result, Comparison)]
    missed = [result for result in comparisons if result.missed]
    for result in missed:
        promised = f"; promised {result.required:.3g}" if result.required else f": {result.note}"
        print(f"missed: {result.name} is {result.ratio:.2f} times as fast{promised}", file=sys.stderr)
    return 1 if missed else 0


def _line(result: Comparison | Cost | Skipped) -> str:
    if isinstance(result, Skipped):
        return f"{result.name:{NAME_WIDTH}} skipped: {result.reason}"
    if isinstance(result, Cost):
        return f"{result.name:{NAME_WIDTH}} {_time(result.seconds):>9}  {result.detail}"
    ratio = f"{result.ratio:.2f} ({result.ratio_low:.2f} to {result.ratio_high:.2f})"
    if result.required:
        ratio += f" >= {result.required:.3g}"
    ours, theirs = _time(result.ours_seconds), _time(result.theirs_seconds)
    accuracy = "" if result.difference is None else f"{result.difference:.1e}"
    if result.note:
        accuracy = result.note
    if result.errors:
        accuracy = "{:.1e}, {:.1e}".format(*result.errors)
    return f"{result.name:{NAME_WIDTH}} {ours:>9} {theirs:>9}  {ratio:32} {accuracy}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _machine() -> dict[str, Any]:
    """What the numbers depend on."""
    libraries = {}
    for name in LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = None
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "libraries": libraries,
    }


if __name__ == "__main__":
    sys.exit(main())

"""The contract between the folders: who may import whom, checked on every import statement, also inside functions."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spectral_mf

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"data": "spectral_mf.data", "solvers": "spectral_mf.solvers", "validation": "spectral_mf.validation"}

LAYERS = ("data", "base", "solvers", "validation", "cli")
"""From the bottom up: a layer may import itself and those below it."""

HEAVY = ("numpy", "scipy", "matplotlib", "h5py", "pyfftw", "finufft", "pydantic", "typer", "rich", "xarray")


def layer_of(module):
    """Layer of a dotted name, or None if it is not ours."""
    parts = module.split(".")
    if parts[0] != "spectral_mf":
        return None
    if parts[1:] == ["__main__"]:
        return "cli"
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else "base"


def module_of(path):
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join([FOLDERS.get(folder, folder), *rest])
    return name.removesuffix(".__init__")


def sources():
    for folder in ("spectral_mf", *FOLDERS):
        yield from sorted((ROOT / folder).rglob("*.py"))


def imported(tree):
    """Dotted names of all that a module imports; a name taken from the package itself counts as where it lives."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports do not survive the mapping of folders"
            for alias in node.names:
                home = spectral_mf._HOME.get(alias.name) if node.module == "spectral_mf" else None
                yield node.lineno, home or f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            yield from ((node.lineno, arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant))


def violations(source, module):
    own = LAYERS.index(layer_of(module))
    for line, name in imported(ast.parse(source)):
        layer = layer_of(name)
        if layer is not None and LAYERS.index(layer) > own:
            yield f"{module}, line {line}: imports {name}"


def test_every_import_points_down_the_layers():
    files = list(sources())
    assert len(files) > 20
    assert [bad for path in files for bad in violations(path.read_text(encoding="utf-8"), module_of(path))] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("spectral_mf.data", "import spectral_mf.errors"),
        ("spectral_mf.trajectory", "def f():\n    from spectral_mf.solvers.run import solve"),
        ("spectral_mf.trajectory", "from spectral_mf import solve"),
        ("spectral_mf.trajectory", "from importlib import import_module\nimport_module('spectral_mf.validation')"),
        ("spectral_mf.solvers.run", "from spectral_mf import validation"),
        ("spectral_mf.validation.report", "import spectral_mf.cli.main as main"),
    ],
)
def test_an_import_that_points_up_is_seen(module, source):
    assert len(list(violations(source, module))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("spectral_mf.theory", "import numpy\nfrom spectral_mf import InputError, data"),
        ("spectral_mf.solvers.run", "from spectral_mf import Trajectory\nfrom spectral_mf.solvers.march import March"),
        ("spectral_mf.cli.main", "from spectral_mf import solve, validation"),
    ],
)
def test_an_import_that_points_down_is_allowed(module, source):
    assert list(violations(source, module)) == []


def test_importing_the_package_loads_no_library(tmp_path):
    code = f"import sys, spectral_mf; print([name for name in {HEAVY} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"

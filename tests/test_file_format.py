"""The page on the file format names all that a file holds, and nothing that it does not."""

import re

import h5py
import pytest

from spectral_mf import FourierDensity, SelfAttention, solve

ROOT_ATTRIBUTES_OF_NETCDF = {"_NCProperties"}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("format") / "run.h5"
    provenance = {"kind": "modes", "seed": 7}
    solve(SelfAttention(5.0), FourierDensity.from_modes({3: 0.01}), 1.0, output=path, provenance=provenance)
    with h5py.File(path, "r") as opened:
        yield opened


@pytest.fixture(scope="module")
def sections(checkout):
    page = (checkout / "docs" / "file-format.md").read_text(encoding="utf-8")
    parts = re.split(r"^## +(.*)$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def named(section):
    """Names in backticks in the first column of the section's table."""
    cells = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def datasets(group):
    return {name for name, entry in group.items() if isinstance(entry, h5py.Dataset)}


def test_dimensions_and_variables(file, sections):
    assert named(sections["Dimensions"]) | named(sections["Variables"]) == datasets(file)


def test_dimensions_of_each_variable(file, sections):
    rows = re.findall(r"^\| (`.+?`) \| ([\w, ]+) \|", sections["Variables"], re.MULTILINE)
    for names, dimensions in rows:
        for name in re.findall(r"`([^`]+)`", names):
            scales = [file[name].dims[axis][0].name.strip("/") for axis in range(file[name].ndim)]
            assert scales == dimensions.split(", "), name


def test_root_attributes(file, sections):
    assert named(sections["Root attributes"]) == set(file.attrs) - ROOT_ATTRIBUTES_OF_NETCDF


def test_restart_group(file, sections):
    assert named(sections["Group `restart`"]) == {f"restart/{name}" for name in datasets(file["restart"])}

"""What is built and shipped: one import package from four folders, and a source distribution that stands alone."""

import configparser
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest

import spectral_mf

FOLDERS = {"spectral_mf": "spectral_mf", "solvers": "spectral_mf/solvers", "validation": "spectral_mf/validation"}
FOLDERS["data"] = "spectral_mf/data"
SHIPPED = {".py", ".json", ".toml", ".typed", ".css"}


@pytest.fixture(scope="module")
def metadata(checkout):
    return tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def installed_files(checkout):
    """Path in the wheel of each file of the four folders."""
    return {
        f"{home}/{path.relative_to(checkout / folder).as_posix()}"
        for folder, home in FOLDERS.items()
        for path in (checkout / folder).rglob("*")
        if path.suffix in SHIPPED and "__pycache__" not in path.parts
    }


def test_every_folder_with_modules_is_a_listed_package(checkout):
    setup = configparser.ConfigParser()
    setup.read(checkout / "setup.cfg", encoding="utf-8")
    listed = set(setup["options"]["packages"].split())
    holding = {name.rpartition("/")[0].replace("/", ".") for name in installed_files(checkout) if name.endswith(".py")}
    assert listed == holding


def test_versions_agree(checkout, metadata):
    version = metadata["version"]
    assert spectral_mf.__version__ == version
    assert f"\nversion: {version}\n" in (checkout / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{version}]" in (checkout / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def distributions(checkout, tmp_path_factory):
    """A source distribution, and a wheel built from that and nothing else."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(checkout)]
    done = subprocess.run(build, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (source,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return source, wheel


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(checkout, metadata, distributions):
    names = set(zipfile.ZipFile(distributions[1]).namelist())
    information = f"{metadata['name']}-{metadata['version']}.dist-info/"
    assert {name for name in names if not name.startswith(information)} == installed_files(checkout)
    assert "spectral_mf/py.typed" in names
    assert information + "licenses/LICENSE" in names


@pytest.mark.slow
def test_the_source_distribution_can_be_tested_and_read(checkout, metadata, distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    wanted = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "setup.cfg", "pyproject.toml", ".ci/run"}
    for folder in ("tests", "docs", "examples", "benchmarks"):
        present = (path for path in (checkout / folder).rglob("*") if path.is_file())
        wanted |= {path.relative_to(checkout).as_posix() for path in present if path.suffix in {".py", ".md", ".png"}}
    assert wanted - names == set()
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".nc"))]

"""The wheels contain every file of the packages, with the metadata that a package index shows."""

import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest

from tests.support.wheels import DISTRIBUTIONS, ROOT, build_wheels, source_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

DISTRIBUTION_FILES = {
    "pyproject.toml", "README.md", "LICENSE",
    "requirements.txt", "requirements-compression.txt", "requirements-nas.txt",
}  # fmt: skip
"""Files of a distribution that are no part of its packages."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, zipfile.ZipFile]:
    """Return the opened wheel of each distribution."""
    target = tmp_path_factory.mktemp("wheels")
    build_wheels(target)
    by_name = {path.name.partition("-")[0]: path for path in target.glob("*.whl")}
    assert len(by_name) == len(DISTRIBUTIONS)
    return {folder: zipfile.ZipFile(by_name[wheel_name(folder)]) for folder in DISTRIBUTIONS}


def wheel_name(distribution: Path) -> str:
    """Return the first part of the name of the wheel's file."""
    for line in (ROOT / distribution / "pyproject.toml").read_text().splitlines():
        if line.startswith("name = "):
            return line.split('"')[1].replace("-", "_")
    raise AssertionError(distribution)


def packaged(distribution: Path) -> set[str]:
    """Return the paths within a wheel of everything that belongs into it."""
    found = set()
    for file in source_files(distribution):
        name = file.as_posix()
        if name in DISTRIBUTION_FILES or file.parts[0] == "webui":
            continue
        if distribution.name == "proto":
            # Contracts are compiled to gen/, which is the root of the packages.
            if name in {"buf.yaml", "gen/nni_wire"} or file.suffix == ".proto":
                continue
            name = name.removeprefix("gen/")
        found.add(name)
    return found


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_wheel_has_every_file_of_its_packages_and_no_other(
    distribution: Path, wheels: dict[Path, zipfile.ZipFile]
) -> None:
    names = wheels[distribution].namelist()

    assert {name for name in names if ".dist-info/" not in name} == packaged(distribution)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_metadata_has_readme_licence_and_addresses(
    distribution: Path, wheels: dict[Path, zipfile.ZipFile]
) -> None:
    archive = wheels[distribution]
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata: Message = BytesParser().parsebytes(archive.read(name))
    (licence,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))

    assert metadata["License-Expression"] == "MIT"
    assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    assert metadata["Description-Content-Type"] == "text/markdown"
    payload = metadata.get_payload()
    assert isinstance(payload, str)
    assert payload.lstrip().startswith("# ")
    assert metadata["Author"]
    assert metadata.get_all("Project-URL")
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])

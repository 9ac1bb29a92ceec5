"""The wheels contain every file of the packages, with metadata, the same bytes in any folder."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.support.sbom import write_bills
from tests.support.wheels import (
    CHECKSUMS,
    DISTRIBUTIONS,
    ROOT,
    SharedWheels,
    build_in,
    build_time,
    shared_wheels,
    write_checksums,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

DISTRIBUTION_FILES = {"pyproject.toml", "README.md", "LICENSE"}
"""Files of a distribution that are no part of its packages, beside the locks of images."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> SharedWheels:
    """Return the wheels of this run of the tests."""
    return shared_wheels(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def wheels(built: SharedWheels) -> dict[Path, zipfile.ZipFile]:
    """Return the opened wheel of each distribution."""
    by_name = {path.name.partition("-")[0]: path for path in built.folder.glob("*.whl")}
    assert len(by_name) == len(DISTRIBUTIONS)
    return {folder: zipfile.ZipFile(by_name[wheel_name(folder)]) for folder in DISTRIBUTIONS}


@pytest.fixture(scope="module")
def bills(built: SharedWheels, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the bills of materials by the names of their files."""
    target = tmp_path_factory.mktemp("bills")
    for wheel in built.folder.glob("*.whl"):
        (target / wheel.name).symlink_to(wheel)
    write_bills(target, int(build_time()))
    return {
        path.name.removesuffix(".cdx.json"): json.loads(path.read_text("utf-8"))
        for path in target.glob("*.cdx.json")
    }


def wheel_name(distribution: Path) -> str:
    """Return the first part of the name of the wheel's file."""
    for line in (ROOT / distribution / "pyproject.toml").read_text().splitlines():
        if line.startswith("name = "):
            return line.split('"')[1].replace("-", "_")
    raise AssertionError(distribution)


def packaged(sources: Path, distribution: Path) -> set[str]:
    """Return the paths within a wheel of everything that belongs into it."""
    found = set()
    for path in (sources / distribution).rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        file = path.relative_to(sources / distribution)
        name = file.as_posix()
        if (
            name in DISTRIBUTION_FILES
            or file.match("requirements*.txt")
            or file.parts[0] == "webui"
        ):
            continue
        if distribution.name == "proto":
            # Contracts are compiled to gen/, which is the root of the packages.
            if name == "buf.yaml" or file.suffix == ".proto":
                continue
            name = name.removeprefix("gen/")
        found.add(name)
    return found


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_wheel_has_every_file_of_its_packages_and_no_other(
    distribution: Path, wheels: dict[Path, zipfile.ZipFile], built: SharedWheels
) -> None:
    names = wheels[distribution].namelist()

    assert {name for name in names if ".dist-info/" not in name} == packaged(
        built.sources, distribution
    )


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


def test_the_same_sources_give_the_same_bytes(built: SharedWheels, tmp_path: Path) -> None:
    # Of another user, in another folder, checked out at another time.
    sources = tmp_path / "a longer/folder"
    shutil.copytree(built.sources, sources, symlinks=True, copy_function=shutil.copy)
    for path in sources.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700 | 0o020)
    before = os.umask(0o077)
    try:
        build_in(sources, tmp_path / "wheels")
    finally:
        os.umask(before)

    assert (tmp_path / "wheels" / CHECKSUMS).read_text() == (built.folder / CHECKSUMS).read_text()


def test_files_have_the_time_of_the_commit(wheels: dict[Path, zipfile.ZipFile]) -> None:
    commit = datetime.fromtimestamp(int(build_time()), UTC)

    entries = [one for archive in wheels.values() for one in archive.infolist()]
    assert {one.date_time[:5] for one in entries} == {commit.timetuple()[:5]}
    assert {one.external_attr >> 16 & 0o002 for one in entries} == {0}


def test_every_package_says_that_it_is_typed(wheels: dict[Path, zipfile.ZipFile]) -> None:
    for archive in wheels.values():
        names = archive.namelist()
        packages = {name.partition("/")[0] for name in names if name.endswith("/__init__.py")}
        typed = {package for package in packages if f"{package}/py.typed" in names}
        assert typed == packages - {"hydra_plugins"}


def test_checksums_are_those_that_sha256sum_checks(built: SharedWheels, tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_bytes(b"content")
    write_checksums(tmp_path)

    for folder in (built.folder, tmp_path):
        names = [line.split()[1] for line in (folder / CHECKSUMS).read_text().splitlines()]
        assert names == sorted(path.name for path in folder.glob("*.whl"))
        done = subprocess.run(["sha256sum", "--check", CHECKSUMS], cwd=folder, check=False)
        assert done.returncode == 0


def test_bills_of_materials_follow_the_schema(bills: dict[str, Any]) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)

    assert [bill for bill in bills.values() if validator.validate_str(json.dumps(bill))] == []


def test_bill_of_a_distribution_has_locked_packages_and_hashes(
    bills: dict[str, Any], built: SharedWheels
) -> None:
    bill = bills["nni"]
    scopes = {one["name"]: one["scope"] for one in bill["components"]}
    depends = {
        one["ref"].partition("@")[0]: one.get("dependsOn", []) for one in bill["dependencies"]
    }
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    root = bill["metadata"]["component"]

    assert scopes["pydantic"] == scopes["annotated-types"] == scopes["nni-proto"] == "required"
    assert scopes["numpy"] == scopes["torch"] == scopes["nni-standalone"] == "optional"
    assert "pytest" not in scopes
    assert any(ref.startswith("pkg:pypi/pydantic-core@") for ref in depends["pkg:pypi/pydantic"])
    assert f"pydantic=={version_in(bill, 'pydantic')}" in pins
    assert digest(root["hashes"]) in (built.folder / CHECKSUMS).read_text()
    assert digest(root["externalReferences"][0]["hashes"]) == sha256(ROOT / "constraints.txt")


def test_bill_of_an_image_has_every_package_of_its_lock_with_all_hashes(
    bills: dict[str, Any],
) -> None:
    locks = {
        f"image-{lock.parent.name}{lock.stem.removeprefix('requirements')}": lock
        for lock in ROOT.glob("services/*/requirements*.txt")
    }

    assert set(locks) == {name for name in bills if name.startswith("image-")}
    for name, lock in locks.items():
        text = lock.read_text()
        components = bills[name]["components"]
        hashes = [
            found["content"]
            for one in components
            for reference in one["externalReferences"]
            for found in reference["hashes"]
        ]
        assert sorted(hashes) == sorted(re.findall("sha256:([0-9a-f]{64})", text))
        assert len(components) == len(re.findall("^[^#\\s].*==", text, re.MULTILINE))
        root = bills[name]["metadata"]["component"]
        assert digest(root["externalReferences"][0]["hashes"]) == sha256(lock)


def version_in(bill: Any, name: str) -> str:
    (found,) = (one["version"] for one in bill["components"] if one["name"] == name)
    return str(found)


def digest(hashes: list[dict[str, str]]) -> str:
    (one,) = hashes
    assert one["alg"] == "SHA-256"
    return one["content"]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

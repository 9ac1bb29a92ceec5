"""The distributions agree with each other and with the one version number."""

import re
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(
    path.parent
    for pattern in ("proto", "sdk", "sdk-benchmark", "services/*")
    for path in ROOT.glob(f"{pattern}/pyproject.toml")
)
NAMES = [folder.relative_to(ROOT).as_posix() for folder in FOLDERS]


def version() -> str:
    text = (ROOT / "sdk/nni/version.py").read_text()
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert match is not None
    return match.group(1)


def project(folder: Path) -> dict[str, Any]:
    with (folder / "pyproject.toml").open("rb") as file:
        content: dict[str, Any] = tomllib.load(file)["project"]
    return content


@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_distribution_has_the_one_version(folder: Path) -> None:
    assert project(folder)["version"] == version()


UNPINNED = {"deepspeed", "tensorrt"}
"""Dependencies that cannot be installed where the tests run, so that no version is tested."""


@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_distribution_asks_for_its_siblings_at_the_same_version(folder: Path) -> None:
    wanted = project(folder)
    optional = wanted.get("optional-dependencies", {})
    requirements = [*wanted["dependencies"], *(one for group in optional.values() for one in group)]

    siblings = [one for one in requirements if re.match(r"nni(-[a-z-]+)?(\[[a-z,]+\])?==", one)]

    assert all(one.endswith(f"=={version()}") for one in siblings)


@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_every_dependency_is_pinned_in_the_constraints(folder: Path) -> None:
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = project(folder)
    optional = wanted.get("optional-dependencies", {})
    requirements = [*wanted["dependencies"], *(one for group in optional.values() for one in group)]

    names = {re.split(r"[\[<>=]", one)[0].lower() for one in requirements}

    foreign = {name for name in names if name != "nni" and not name.startswith("nni-")}
    assert foreign - UNPINNED <= pinned


def pins() -> list[str]:
    """Return the names of the distributions that the constraints pin."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line.partition("==")[0] for line in lines if "==" in line]


def test_installed_pins_take_the_python_of_debian_12() -> None:
    """3.11.2: the oldest Python on which everything is set up."""
    asked = {}
    for name in pins():
        with suppress(PackageNotFoundError):
            asked[name] = str(metadata(name).json.get("requires_python", ""))

    assert len(asked) > 100  # of those that are installed here
    assert [name for name, rule in asked.items() if "3.11.2" not in SpecifierSet(rule)] == []

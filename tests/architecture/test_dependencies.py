"""docs/dependencies.md has a row for every dependency, and for no other; its sizes are right."""

import json
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[2]
OWN = re.compile(r"nni(-\w+)*\Z")
NAME = re.compile(r"[A-Za-z0-9_.-]+")
OWN_PARTS = re.compile(r"^## What NNI implements itself$(.*)", re.MULTILINE | re.DOTALL)
SIZE = re.compile(r"`([^`]+)`, about ([\d,]+) lines")
"""Path of a module, or pattern of paths, and its lines, in the first column of a row."""
SOURCES = (
    "sdk/nni",
    "sdk-benchmark/nni_benchmark",
    "proto/nni_wire",
    "services/*/svc_*",
    "services/manager/webui/src",
)
SIZE_TOLERANCE = 0.15
SECTION = re.compile(r"^## What NNI depends on$(.*?)^## ", re.MULTILINE | re.DOTALL)


def declared() -> Iterator[str]:
    """Yield the names of all direct dependencies, in lower case."""
    for path in sorted(ROOT.glob("*/pyproject.toml")) + sorted(ROOT.glob("*/*/pyproject.toml")):
        content = tomllib.loads(path.read_text("utf-8"))
        project = content["project"]
        extras = project.get("optional-dependencies", {}).values()
        for requirement in [
            *content["build-system"]["requires"],
            *project.get("dependencies", ()),
            *(one for extra in extras for one in extra),
        ]:
            yield plain_name(requirement)
    for line in (ROOT / "requirements-dev.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield plain_name(line)
    page = json.loads((ROOT / "services/manager/webui/package.json").read_text("utf-8"))
    yield from page["dependencies"]
    yield from page["devDependencies"]


def plain_name(requirement: str) -> str:
    match = NAME.match(requirement)
    assert match is not None
    return match[0].lower()


def explained() -> set[str]:
    """Return the names in the first column of the first section's tables, in lower case."""
    section = SECTION.search((ROOT / "docs/dependencies.md").read_text("utf-8"))
    assert section is not None
    rows = [line.split("|")[1] for line in section[1].splitlines() if line.startswith("| `")]
    return {name.lower() for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_dependency_has_a_reason() -> None:
    names = {name for name in declared() if not OWN.match(name)}

    assert explained() == names


def sizes() -> list[tuple[str, int]]:
    """Return the paths and numbers of lines that the page states of NNI's own parts."""
    section = OWN_PARTS.search((ROOT / "docs/dependencies.md").read_text("utf-8"))
    assert section is not None
    column = " ".join(line.split("|")[1] for line in section[1].splitlines() if "|" in line)
    found = [(path, int(number.replace(",", ""))) for path, number in SIZE.findall(column)]
    assert len(found) == len(re.findall(r"\blines\b", column))
    return found


def source_files() -> list[str]:
    folders = [folder for pattern in SOURCES for folder in ROOT.glob(pattern)]
    files = (path for folder in folders for path in folder.rglob("*"))
    return [
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.suffix in {".py", ".ts", ".tsx"} and ".test." not in path.name
    ]


def test_stated_sizes_of_own_parts_are_about_right() -> None:
    files = source_files()
    wrong = {}

    for pattern, stated in sizes():
        of_part = [path for path in files if fnmatchcase(path, f"*/{pattern}")]
        assert len(of_part) == 1 or ("*" in pattern and of_part), f"{pattern} names {of_part}"
        lines = sum(len((ROOT / path).read_text("utf-8").splitlines()) for path in of_part)
        if abs(stated - lines) > SIZE_TOLERANCE * lines:
            wrong[pattern] = f"{stated} stated, {lines} in the tree"

    assert wrong == {}

"""docs/dependencies.md has a row for every dependency, and for no other."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
OWN = re.compile(r"nni(-\w+)*\Z")
NAME = re.compile(r"[A-Za-z0-9_.-]+")
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

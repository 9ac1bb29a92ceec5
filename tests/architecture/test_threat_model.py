"""The threat model of `docs/security.md` names tests that exist, for every kind of attacker."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "security.md"
ATTACKERS = {"trial code", "`user`", "agent", "another Linux user", "network", "`viewer`"}


def rows() -> list[list[str]]:
    """Return the cells of the table."""
    section = PAGE.read_text().partition("## Threat model\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines if not line.startswith("| attacker")]


def named_tests(cell: str) -> Iterator[Path]:
    """Yield the files of a cell; `…/` stands for the folder of the file before."""
    folder = TESTS
    for name in re.findall(r"`([^`]+)`", cell):
        path = folder / name.removeprefix("…/") if name.startswith("…/") else TESTS / name
        folder = path.parent
        yield path


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[1][:40])
def test_each_row_is_shown_by_tests_that_exist(row: list[str]) -> None:
    attackers, can, cannot, shown = row
    files = list(named_tests(shown))

    assert {name.strip() for name in attackers.split(",")} <= ATTACKERS
    assert can
    assert cannot
    assert files
    assert [str(path) for path in files if "def test_" not in path.read_text()] == []


def test_every_kind_of_attacker_has_rows() -> None:
    found = {name.strip() for row in rows() for name in row[0].split(",")}

    assert found == ATTACKERS

"""Every claim of the specifications that has been built is proved by a test with its number."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"""mark\.claim\(\s*["'](\w+)["']\s*,\s*(\d+)\s*\)""")


def numbers(text: str) -> set[int]:
    """Read a list like `1-13, 28`."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


BUILT = {
    "compression": numbers("1-92"),
    "hpo": numbers("1-52"),
    "nas": numbers("1-91"),
    "platform": numbers("1-85"),
}


def proved() -> dict[str, set[int]]:
    """Collect the numbers of all claim marks."""
    found: dict[str, set[int]] = {spec: set() for spec in BUILT}
    for path in (ROOT / "tests").rglob("*.py"):
        for spec, number in MARK.findall(path.read_text()):
            found.setdefault(spec, set()).add(int(number))
    return found


@pytest.mark.parametrize("spec", BUILT)
def test_every_built_claim_has_a_test(spec: str) -> None:
    missing = BUILT[spec] - proved()[spec]

    assert ", ".join(map(str, sorted(missing))) == ""


def test_marks_name_known_specifications() -> None:
    assert set(proved()) <= set(BUILT)

"""The example runs with fewer trials than in its README."""

import re

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_both_spaces_give_the_same_search(scripts: Scripts) -> None:
    printed = scripts("integrations/spaces/search.py", 6)

    found = re.findall(r"(\w+): ([\d.]+) at depth \d+", printed)
    assert [name for name, _ in found] == ["ConfigSpace", "hyperopt"]

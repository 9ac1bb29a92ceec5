"""The example runs with fewer configurations than in its README."""

import re

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_both_searches_find_a_model_that_is_better_than_chance(scripts: Scripts) -> None:
    printed = scripts("integrations/sklearn/search.py", 4)

    scores = [float(score) for score in re.findall(r"([\d.]+) on the test", printed)]
    assert len(scores) == 2
    assert min(scores) > 0.5  # guessing gives 0.1
    assert "n_samples: " in printed

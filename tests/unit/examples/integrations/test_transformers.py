"""The example runs with fewer trials and epochs than in its README."""

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_the_best_arguments_are_printed(scripts: Scripts) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    printed = scripts("integrations/transformers/search.py", 2, 1)

    assert "0: SUCCEEDED after 1 epochs" in printed
    assert "best loss " in printed

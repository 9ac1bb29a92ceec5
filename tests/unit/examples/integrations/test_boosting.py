"""The example runs with fewer iterations than in its README."""

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_a_bad_trial_ends_early(library: str, scripts: Scripts) -> None:
    pytest.importorskip(library)
    printed = scripts("integrations/boosting/tune.py", library, 4, 8)

    assert "0: " in printed
    assert "EARLY_STOPPED after" in printed
    assert "best loss " in printed

"""The two words that say which way is better."""

import pytest

from nni.hpo.optimize_mode import checked_optimize_mode


@pytest.mark.parametrize("mode", ["maximize", "minimize"])
def test_either_word_is_returned(mode: str) -> None:
    assert checked_optimize_mode(mode) == mode


@pytest.mark.parametrize("mode", ["maximise", "", "Minimize"])
def test_any_other_word_is_refused_with_what_it_is(mode: str) -> None:
    with pytest.raises(ValueError, match=f"must be 'maximize' or 'minimize', got '{mode}'"):
        checked_optimize_mode(mode)

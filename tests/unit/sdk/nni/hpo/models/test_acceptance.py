"""Draws that are accepted by their probability of success."""

from random import Random

import numpy as np
import pytest

from nni.hpo.models.acceptance import accepted


def test_draw_that_is_sure_to_succeed_is_accepted() -> None:
    assert accepted(["fails", "succeeds"], [-np.inf, 0.0], Random(0)) == "succeeds"


def test_likeliest_draw_is_taken_if_none_is_accepted() -> None:
    assert accepted(["a", "b"], [-1000.0, -900.0], Random(0)) == "b"


def test_draw_is_accepted_as_often_as_it_succeeds() -> None:
    rng = Random(0)

    first = sum(accepted(["a", "b"], [np.log(0.3), 0.0], rng) == "a" for _ in range(1000))

    # Standard deviation: 14.5.
    assert 240 < first < 360


class LeastRandom(Random):
    """Source of the least random number, 0."""

    def random(self) -> float:
        return 0.0


def test_draw_that_is_sure_to_fail_is_never_accepted() -> None:
    assert accepted(["fails", "b"], [-np.inf, -1000.0], LeastRandom()) == "b"


def test_every_draw_needs_its_chance() -> None:
    with pytest.raises(ValueError, match="shorter"):
        accepted(["fails", "b"], [-np.inf], Random(0))

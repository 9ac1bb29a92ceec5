"""Draws that are accepted by their probability of success."""

from random import Random

import numpy as np
import pytest

from nni.hpo import TPETuner
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


def test_one_of_sixteen_draws_of_the_prior_is_accepted_once_a_trial_has_failed() -> None:
    """The first one where failures say nothing; a draw and an acceptance take a number each."""
    plain, failing = (TPETuner(tpe_args={"n_startup_jobs": 50}, seed=0) for _ in range(2))
    for tuner in (plain, failing):
        tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    numbers = [plain.generate_parameters(number)["x"] for number in range(20)]

    failing.import_data([{"parameter": {"x": 0.5}, "value": float("nan")}])
    found = [failing.generate_parameters(number)["x"] for number in range(2)]

    assert found == [numbers[0], numbers[16 + 1]]


def test_every_draw_needs_its_chance() -> None:
    with pytest.raises(ValueError, match="shorter"):
        accepted(["fails", "b"], [-np.inf], Random(0))

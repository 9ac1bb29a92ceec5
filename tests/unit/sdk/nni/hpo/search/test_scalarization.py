"""Scalarization of reports."""

import json
import math
from typing import Any

import pytest

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import objectives_of
from nni.hpo.search._scalarization import Scalarizer

TWO = objectives_of({"a": "minimize", "b": "maximize"})
LIMITED = [{"metric": "cost", "max": 10}]


def values(scalarizer: Scalarizer, *reports: JsonValue) -> list[JsonValue]:
    """Return the tuner results of reports, each with the report's number as configuration."""
    return [
        result.value
        for number, report in enumerate(reports)
        for result in scalarizer.tuner_results(number, report)
    ]


def test_one_objective_is_passed_as_reported() -> None:
    report = {"default": 1, "other": 2}

    assert values(Scalarizer(objectives_of("maximize"), vector=False), report, 3) == [report, 3]


def test_a_result_that_is_better_in_everything_has_the_lower_loss() -> None:
    scalarizer = Scalarizer(TWO, vector=False)
    values(scalarizer, *({"a": n, "b": -n} for n in range(10)))

    best, middle, worst = values(
        scalarizer, {"a": -1, "b": 1}, {"a": 4.5, "b": -4.5}, {"a": 99, "b": -99}
    )

    assert best < -1 < middle < worst  # -1 is the best of the first ten
    assert scalarizer.optimize_mode == "minimize"


def test_scales_do_not_matter() -> None:
    one, other = Scalarizer(TWO, vector=False), Scalarizer(TWO, vector=False)
    points = [(n * 7 % 11, n * 5 % 13) for n in range(20)]

    plain = values(one, *({"a": a, "b": b} for a, b in points))
    scaled = values(other, *({"a": 1e6 * a, "b": 1e-6 * b} for a, b in points))

    assert plain == pytest.approx(scaled)
    assert len(plain) == 20


def test_any_part_of_the_front_is_good() -> None:
    scalarizer = Scalarizer(TWO, vector=False)
    values(scalarizer, *({"a": 5 + n % 3, "b": -5 - n % 4} for n in range(10)))

    left, right, beaten = values(
        scalarizer, {"a": 1, "b": -5}, {"a": 5, "b": -1}, {"a": 5.5, "b": -5.5}
    )

    assert max(left, right) < beaten


def test_the_first_results_are_kept_back_until_there_is_a_scale() -> None:
    scalarizer = Scalarizer(TWO, vector=False)

    assert values(scalarizer, *({"a": n, "b": n} for n in range(9))) == []
    assert len(scalarizer.tuner_results("tenth", {"a": 9, "b": 9})) == 10


def test_of_several_objectives_those_beyond_a_limit_are_the_worst() -> None:
    scalarizer = Scalarizer(
        objectives_of({"a": "minimize", "cost": "minimize"}, LIMITED), vector=False
    )

    values(scalarizer, *({"a": n, "cost": n} for n in range(10)))

    near, far, fine = values(
        scalarizer, {"a": 0, "cost": 11}, {"a": 0, "cost": 99}, {"a": 999, "cost": 9}
    )

    assert fine < near < far


def test_incomplete_reports_teach_nothing() -> None:
    assert values(Scalarizer(TWO, vector=False), {"a": 1}, {"a": 1, "b": math.nan}, 3.0) == []


@pytest.mark.parametrize("mode", ["minimize", "maximize"])
def test_beyond_a_limit_is_worse_than_all_within(mode: str) -> None:
    scalarizer = Scalarizer(objectives_of(mode, LIMITED), vector=False)
    within = values(scalarizer, *({"default": n, "cost": 1} for n in range(5)))
    numbers = [report["default"] for report in within]

    near, far = values(scalarizer, {"default": 0, "cost": 11}, {"default": 4, "cost": 99})

    if mode == "minimize":
        assert max(numbers) < near < far
    else:
        assert min(numbers) > near > far


def test_what_is_beyond_waits_for_something_within() -> None:
    scalarizer = Scalarizer(objectives_of("minimize", LIMITED), vector=False)

    assert values(scalarizer, {"default": 1, "cost": 50}, {"default": 1, "cost": 20}) == []
    tuner_results = scalarizer.tuner_results("within", {"default": 5.0, "cost": 1})

    assert [result.parameters for result in tuner_results] == ["within", 0, 1]
    assert tuner_results[0].value == {"default": 5.0, "cost": 1}
    assert tuner_results[1].value > tuner_results[2].value > 5.0


def test_goes_on_from_its_state() -> None:
    reports = [{"a": n % 3, "b": n % 5} for n in range(20)]
    scalarizer, other = Scalarizer(TWO, vector=False), Scalarizer(TWO, vector=False)
    values(scalarizer, *reports[:7])

    other.load_state(json.loads(json.dumps(scalarizer.state())))

    assert values(other, *reports[7:]) == values(scalarizer, *reports[7:])


def test_of_one_objective_those_beyond_a_limit_are_one_to_two_spreads_above_the_worst() -> None:
    scalarizer = Scalarizer(objectives_of({"a": "minimize"}, LIMITED), vector=False)
    values(scalarizer, *({"a": n, "cost": 1} for n in (5, 3, 4)))

    near, far = values(scalarizer, {"a": 0, "cost": 10.001}, {"a": 0, "cost": 1e9})

    assert 7 <= near < far <= 9  # the worst is 5, the spread 2


def test_beyond_a_limit_is_worse_where_all_within_are_zero() -> None:
    scalarizer = Scalarizer(objectives_of({"a": "minimize"}, LIMITED), vector=False)
    values(scalarizer, *({"a": 0, "cost": 1} for _ in range(3)))

    near, far = values(scalarizer, {"a": -5, "cost": 10.001}, {"a": -5, "cost": 1e9})

    assert 1 <= near < far <= 2  # a spread of 1 in place of none


@pytest.mark.parametrize(
    ("modes", "limits", "vector", "expected"),
    [
        ("minimize", None, False, [{"default": 1, "a": 2}]),
        ({"a": "minimize"}, None, False, [2]),
        ({"a": "minimize"}, [{"metric": "default", "max": 9}], False, []),
        ({"a": "minimize", "default": "minimize"}, None, False, []),
        ({"a": "minimize", "default": "minimize"}, None, True, [{"default": 1, "a": 2}]),
    ],
)
def test_intermediate_results_are_those_that_the_tuner_can_compare(
    modes: Any, limits: Any, vector: bool, expected: list[Any]
) -> None:
    scalarizer = Scalarizer(objectives_of(modes, limits), vector=vector)

    assert scalarizer.tuner_intermediates([{"default": 1, "a": 2}]) == expected


def test_restored_scalarizer_returns_what_it_withheld() -> None:
    limited = objectives_of("minimize", LIMITED)
    scalarizer, other = Scalarizer(limited, vector=False), Scalarizer(limited, vector=False)
    values(scalarizer, {"default": 1, "cost": 50})

    other.load_state(json.loads(json.dumps(scalarizer.state())))
    restored = other.tuner_results("within", {"default": 5.0, "cost": 1})

    assert [result.parameters for result in restored] == ["within", 0]
    assert restored[1].value > 5.0


@pytest.mark.parametrize(
    "objectives", [{"a": "minimize"}, {"a": "minimize", "b": "minimize"}], ids=["one", "two"]
)
def test_report_without_a_limited_metric_is_the_worst_but_finite(objectives: Any) -> None:
    scalarizer = Scalarizer(objectives_of(objectives, LIMITED), vector=False)
    values(scalarizer, *({"a": n, "b": n, "cost": 1} for n in range(10)))

    far, missing = values(scalarizer, {"a": 0, "b": 0, "cost": 1e6}, {"a": 0, "b": 0})

    assert far < missing < math.inf


def test_first_results_have_losses_from_minus_one_at_the_best_to_zero_at_the_median() -> None:
    scalarizer = Scalarizer(objectives_of({"a": "minimize", "b": "minimize"}), vector=False)

    losses = values(scalarizer, *({"a": n, "b": n} for n in range(11)))[:10]

    assert min(losses) == pytest.approx(-1.0)
    assert sum(loss <= 0 for loss in losses) == 5


def test_objective_that_never_differs_leaves_the_order_to_the_other() -> None:
    scalarizer = Scalarizer(objectives_of({"a": "minimize", "b": "minimize"}), vector=False)
    values(scalarizer, *({"a": n, "b": 3} for n in range(10)))

    losses = values(scalarizer, *({"a": n, "b": 3} for n in (1, 4, 8)))

    assert losses == sorted(losses)
    assert len(set(losses)) == 3


def test_loss_is_the_largest_weighted_part_and_a_twentieth_of_their_sum() -> None:
    scalarizer = Scalarizer(objectives_of({"a": "minimize", "b": "minimize"}), vector=False)
    values(scalarizer, *({"a": n, "b": n} for n in range(10)))

    (loss,) = values(scalarizer, {"a": 0, "b": 9})

    # Parts of the weights 0.7 and 0.3 are 0.7 and 0.9; the median of the first results is 1.5, and
    # the best of them lies 0.75 below.
    assert loss == pytest.approx((0.9 + 0.05 * 1.6 - 1.5) / 0.75)


def test_unit_of_an_objective_whose_first_results_are_equal_is_one() -> None:
    scalarizer = Scalarizer(objectives_of({"a": "minimize", "b": "minimize"}), vector=False)
    values(scalarizer, *({"a": n, "b": 3} for n in range(10)))

    (loss,) = values(scalarizer, {"a": 0, "b": 4})

    # One unit above the first results is two above the origin. Parts of the weights 0.7 and 0.3
    # are 0.7 and 0.6; the first results have 0.75 at best and 1.485 in the middle.
    assert loss == pytest.approx((0.7 + 0.05 * 1.3 - 1.485) / (1.485 - 0.75))

"""Stopping rules."""

import json
import math
from random import Random
from typing import Any

import pytest

from nni.hpo.objectives import objectives_of
from nni.hpo.search.stopping_rules import (
    NoImprovement,
    RegretBound,
    SearchResult,
    StoppingMonitor,
    StoppingRule,
    TargetReached,
    regret_upper_bound,
)

SPACE: dict[str, Any] = {
    "x": {"_type": "uniform", "_value": [-1, 1]},
    "y": {"_type": "uniform", "_value": [-1, 1]},
}


def ends_after(rule: StoppingRule, losses: list[float]) -> int | None:
    """Return after how many results the search ends; None if it does not."""
    for count in range(1, len(losses) + 1):
        if rule.reason([SearchResult({}, loss) for loss in losses[:count]], SPACE):
            return count
    return None


def test_no_improvement_counts_from_the_best_result() -> None:
    assert ends_after(NoImprovement(3), [5, 4, 4, 4, 3, 3, 3, 3, 3]) == 8
    assert ends_after(NoImprovement(3), [5, 4, 3, 2, 1, 0]) is None


def test_small_improvements_may_count_as_none() -> None:
    losses = [1 - 0.01 * n for n in range(10)]

    assert ends_after(NoImprovement(3, least=0.1), losses) == 4
    assert ends_after(NoImprovement(3), losses) is None


def test_trials_without_a_result_are_no_improvement() -> None:
    assert ends_after(NoImprovement(2), [1.0, math.inf, math.inf]) == 3
    assert ends_after(NoImprovement(2), [math.inf] * 9) is None


def test_target_is_reached_in_its_own_direction() -> None:
    assert ends_after(TargetReached(1.0), [3, 2, 1, 0]) == 3
    assert ends_after(TargetReached(0.9, "maximize"), [-0.5, -0.9, -1.0]) == 2


def bowl(count: int, seed: int = 0) -> list[SearchResult]:
    """Return results of a search that closes in on the minimum of a bowl."""
    rng = Random(seed)
    results = []
    for number in range(count):
        width = 1.0 if number < count // 2 else 0.1
        point = {"x": width * rng.uniform(-1, 1), "y": width * rng.uniform(-1, 1)}
        results.append(SearchResult(point, 3 * (point["x"] ** 2 + point["y"] ** 2)))
    return results


@pytest.mark.parametrize("seed", range(5))
def test_what_can_be_gained_is_bounded_and_shrinks(seed: int) -> None:
    few, many = bowl(12, seed), bowl(60, seed)

    # The minimum is 0, so the best loss is the true regret.
    assert regret_upper_bound(few, SPACE) >= min(result.loss for result in few)
    assert regret_upper_bound(many, SPACE) < regret_upper_bound(few, SPACE)
    assert regret_upper_bound(many, SPACE) < 0.3


def test_regret_bound_looks_now_and_then() -> None:
    results = bowl(60)

    assert "can still be gained" in RegretBound(0.5, every=10).reason(results, SPACE)
    assert RegretBound(0.5, every=7).reason(results, SPACE) == ""
    assert RegretBound(0.5, every=1).reason(results[:9], SPACE) == ""


def test_watch_leaves_out_what_is_beyond_a_limit() -> None:
    watch = StoppingMonitor(
        [TargetReached(1.0)], objectives_of("minimize", [{"metric": "cost", "max": 5}])
    )

    watch.tell({}, {"default": 0, "cost": 9}, SPACE)
    assert watch.reason == ""
    watch.tell({}, {"default": 1, "cost": 1}, SPACE)

    assert watch.reason == "the target 1 is reached"


def test_watch_goes_on_from_its_state() -> None:
    one, other = (StoppingMonitor([NoImprovement(3)], objectives_of("minimize")) for _ in range(2))
    one.tell({}, 1.0, SPACE)
    one.tell({}, None, SPACE)

    other.load_state(json.loads(json.dumps(one.state())))
    for _ in range(2):
        other.tell({}, 2.0, SPACE)

    assert other.reason == "no improvement over 3 trials"


def test_watch_counts_what_is_recalled() -> None:
    watch = StoppingMonitor([NoImprovement(3)], objectives_of("minimize"))

    watch.replay([({}, 1.0), ({}, 2.0), ({}, 2.0)], SPACE)
    before = watch.reason
    watch.tell({}, 2.0, SPACE)

    assert before == ""
    assert watch.reason == "no improvement over 3 trials"


def test_regret_is_of_the_space_that_is_searched_now() -> None:
    results = bowl(60)
    elsewhere = SPACE | {"x": {"_type": "uniform", "_value": [5, 6]}}

    assert RegretBound(1e9, every=1).reason(results, elsewhere) == ""
    assert RegretBound(1e9, every=1).reason(results, {"combine_params": {}}) == ""


def test_rules_need_one_objective() -> None:
    with pytest.raises(ValueError, match="need one objective"):
        StoppingMonitor([NoImprovement(3)], objectives_of({"a": "minimize", "b": "minimize"}))


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="trials"):
        NoImprovement(0)
    with pytest.raises(ValueError, match="least must be >= 0"):
        NoImprovement(1, -1.0)
    with pytest.raises(ValueError, match="must be finite"):
        TargetReached(math.nan)
    with pytest.raises(ValueError, match="bound must be > 0"):
        RegretBound(0.0)
    with pytest.raises(ValueError, match="bound must be > 0 and finite"):
        RegretBound(math.inf)
    with pytest.raises(ValueError, match="every must be"):
        RegretBound(0.5, every=0)


def test_a_target_has_the_direction_of_the_search() -> None:
    watch = StoppingMonitor([TargetReached(0.95)], objectives_of("maximize"))

    watch.tell({}, 0.5, SPACE)
    assert watch.reason == ""
    watch.tell({}, 0.96, SPACE)

    assert watch.reason == "the target 0.95 is reached"


def test_a_target_of_another_direction_is_refused() -> None:
    with pytest.raises(ValueError, match="must be that of the search, 'maximize', got 'minimize'"):
        StoppingMonitor([TargetReached(1.0, "minimize")], objectives_of("maximize"))
    with pytest.raises(ValueError, match="optimize_mode must be 'maximize' or 'minimize'"):
        TargetReached(1.0, "max")


def test_equal_results_leave_nothing_to_gain() -> None:
    results = [SearchResult(result.parameters, 2.0) for result in bowl(12)]

    assert regret_upper_bound(results, SPACE) == 0.0


def test_regret_bound_is_computed_at_every_fifth_result_from_the_tenth_on() -> None:
    rule, results = RegretBound(1e9), bowl(20)

    ends = [count for count in range(1, 21) if rule.reason(results[:count], SPACE)]

    assert ends == [10, 15, 20]


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 64.0), (8.0, 0.0), (8.0, -64.0)])
def test_regret_has_the_unit_of_the_objective_and_no_origin(factor: float, shift: float) -> None:
    plain = bowl(12)
    other = [SearchResult(one.parameters, factor * one.loss + shift) for one in plain]

    bound = regret_upper_bound(plain, SPACE)

    assert regret_upper_bound(other, SPACE) == pytest.approx(factor * bound, rel=0.01)


def test_bound_is_that_of_a_process_that_can_be_differentiated_twice() -> None:
    assert regret_upper_bound(bowl(12), SPACE) == pytest.approx(0.195, rel=0.2)


def test_regret_bound_needs_ten_results_that_can_be_modelled() -> None:
    rule, failed = RegretBound(1e9), SearchResult({"x": 0, "y": 0}, math.inf)

    assert rule.reason([*bowl(9), *[failed] * 6], SPACE) == ""
    assert rule.reason([*bowl(10), *[failed] * 5], SPACE) != ""


def test_search_goes_on_while_as_much_as_the_bound_can_be_gained() -> None:
    results = bowl(20)
    gain = regret_upper_bound(results, SPACE)

    assert RegretBound(gain).reason(results, SPACE) == ""
    assert RegretBound(1.001 * gain).reason(results, SPACE) == (
        f"at most {gain:.3g} can still be gained"
    )


def test_first_rule_that_ends_the_search_gives_the_reason_for_good() -> None:
    watch = StoppingMonitor(
        [TargetReached(1.0), NoImprovement(1), NoImprovement(2)], objectives_of("minimize")
    )

    for loss in (3.0, 4.0, 0.0, 5.0):
        watch.tell({}, loss, SPACE)

    assert watch.reason == "no improvement over 1 trials"

"""Grid search."""

import json
import logging
from typing import Any

import pytest

from nni.algorithms.hpo.gridsearch_tuner import GridSearchTuner
from nni.errors import NoMoreTrialError
from nni.hpo.space.domains import canonical_json
from tests.support.search_spaces import GRID, GRID_NESTED


def tuner_of(space: Any) -> GridSearchTuner:
    tuner = GridSearchTuner()
    tuner.update_search_space(space)
    return tuner


def rest(tuner: GridSearchTuner) -> list[dict[str, Any]]:
    return tuner.generate_multiple_parameters(list(range(100)))


@pytest.mark.claim("hpo", 15)
def test_eighteen_distinct_configurations_then_no_more() -> None:
    tuner = tuner_of(GRID)

    configurations = [tuner.generate_parameters(i) for i in range(18)]

    expected = {(a, b, c) for a in (1, 2, 3) for b in (0, 1) for c in (2.0, 5.0, 10.0)}
    assert {(p["a"], p["b"], p["c"]) for p in configurations} == expected
    with pytest.raises(NoMoreTrialError, match="all 18 combinations"):
        tuner.generate_parameters(18)


@pytest.mark.claim("hpo", 16)
def test_nested_space_gives_every_combination_inside_its_branches() -> None:
    layers = [configuration["layer0"] for configuration in rest(tuner_of(GRID_NESTED))]

    assert layers == [
        {"_name": "Empty"},
        *({"_name": "Conv", "kernel_size": size} for size in (1, 2, 3, 5)),
        *({"_name": "Max_pool", "pooling_size": size} for size in (2, 3, 5)),
    ]


@pytest.mark.claim("hpo", 17)
def test_imported_configurations_are_not_sent_again() -> None:
    tuner = tuner_of(GRID)
    imported = [{"a": 2, "b": 1, "c": 5}, {"c": 10.000000000001, "b": 0.0, "a": 3}]

    tuner.import_data([{"parameter": parameter, "value": 1} for parameter in imported])

    left = rest(tuner)
    assert len(left) == 16
    assert {"a": 2, "b": 1, "c": 5.0} not in left
    assert {"a": 3, "b": 0, "c": 10.0} not in left


@pytest.mark.claim("hpo", 49)
def test_results_replayed_on_resume_are_not_repeated() -> None:
    first = tuner_of(GRID)
    done = first.generate_multiple_parameters(list(range(7)))
    resumed = tuner_of(GRID)

    resumed.import_data([{"parameter": parameter, "value": 0.5} for parameter in done])

    texts = {canonical_json(parameter) for parameter in [*done, *rest(resumed)]}
    assert len(texts) == 18


def test_samples_off_the_grid_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    tuner = tuner_of(GRID)

    with caplog.at_level(logging.WARNING):
        tuner.import_data([{"parameter": {"a": 9}, "value": 1}])

    assert "1 of 1 imported samples lie outside the grid" in caplog.text
    assert len(rest(tuner)) == 18


def test_new_space_skips_what_was_sent_or_imported() -> None:
    tuner = tuner_of(GRID)
    tuner.generate_multiple_parameters([0, 1])
    tuner.import_data([{"parameter": {"a": 3, "b": 1, "c": 10}, "value": 1}])

    tuner.update_search_space({**GRID, "a": {"_type": "choice", "_value": [1, 3, 4]}})

    assert len(rest(tuner)) == 18 - 3


def test_order_is_always_the_same() -> None:
    assert rest(tuner_of(GRID)) == rest(tuner_of(GRID))


def test_infinite_types_are_searched_by_ever_finer_grids() -> None:
    tuner = tuner_of({"x": {"_type": "uniform", "_value": [0, 1]}})

    values = [
        configuration["x"] for configuration in tuner.generate_multiple_parameters(list(range(9)))
    ]

    assert values == [0, 0.5, 1, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875]


def test_finer_grid_skips_what_was_imported() -> None:
    tuner = tuner_of({"x": {"_type": "uniform", "_value": [0, 1]}})
    tuner.import_data([{"parameter": {"x": 0.25}, "value": 1}])

    values = [
        configuration["x"] for configuration in tuner.generate_multiple_parameters(list(range(5)))
    ]

    assert values == [0, 0.5, 1, 0.75, 0.125]


def test_state_holds_the_level_of_the_grid() -> None:
    space = {"x": {"_type": "normal", "_value": [0, 1]}, "b": {"_type": "choice", "_value": [1, 2]}}
    tuner, restored = tuner_of(space), tuner_of(space)
    tuner.generate_multiple_parameters(list(range(8)))

    restored.load_state(json.loads(json.dumps(tuner.state())))

    assert rest(restored) == rest(tuner)


def test_quantized_infinite_type_ends_when_no_grid_has_more() -> None:
    tuner = tuner_of({"x": {"_type": "qnormal", "_value": [0, 1, 1]}})

    values = {configuration["x"] for configuration in rest(tuner)}

    # The finest grid reaches probabilities of 2 ** -18, which lie 4.5 deviations from the mean.
    assert values == set(range(-4, 5))


def test_user_prior_is_refused() -> None:
    entry = {"_type": "randint", "_value": [0, 9], "_prior": 5}

    with pytest.raises(ValueError, match="_prior"):
        GridSearchTuner().update_search_space({"x": entry})


def test_may_be_asked_early() -> None:
    assert GridSearchTuner.lookahead


def test_samples_on_the_grid_are_not_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    tuner = tuner_of(GRID)

    with caplog.at_level(logging.WARNING):
        tuner.import_data([{"parameter": {"a": 3, "b": 1, "c": 10}, "value": 1}])
    assert caplog.text == ""

    with caplog.at_level(logging.WARNING):
        tuner.import_data([{"parameter": {"a": a, "b": 0, "c": 10}, "value": 1} for a in (1, 2, 9)])
    assert "1 of 3 imported samples lie outside the grid" in caplog.text


def test_import_of_the_next_combination_is_skipped() -> None:
    tuner = tuner_of(GRID)
    first, second = tuner_of(GRID).generate_multiple_parameters([0, 1])

    tuner.import_data([{"parameter": first, "value": 1}])

    assert tuner.generate_parameters(0) == second


def test_combinations_that_break_a_constraint_are_left_out() -> None:
    left = rest(tuner_of({**GRID, "_constraints": ["a != 2 or c > 4"]}))

    assert len(left) == 18 - 2
    assert not any(one["a"] == 2 and one["c"] == 2.0 for one in left)


def test_state_from_before_grids_had_levels_is_of_the_first() -> None:
    tuner, restored = tuner_of(GRID), tuner_of(GRID)
    tuner.generate_multiple_parameters([0, 1, 2])
    state = tuner.state()
    del state["level"]

    restored.load_state(state)

    assert restored.state() == tuner.state()
    assert rest(restored) == rest(tuner)

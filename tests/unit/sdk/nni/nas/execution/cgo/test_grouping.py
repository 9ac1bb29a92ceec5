"""Groups of models that are trained together."""

from typing import Any

import pytest

from nni.nas.execution.cgo.grouping import grouped, metrics_by_model


@pytest.mark.claim("nas", 74)
@pytest.mark.parametrize(("devices", "trials"), [(4, 1), (2, 2), (1, 3)])
def test_three_models_make_as_many_trials_as_devices_demand(devices: int, trials: int) -> None:
    groups = grouped(["a", "b", "c"], devices)

    assert len(groups) == trials
    assert [model for group in groups for model in group] == ["a", "b", "c"]


def test_models_that_do_not_fit_are_in_groups_of_their_own() -> None:
    groups = grouped([1, 2, 3, 4], 4, lambda one, other: one % 2 == other % 2)

    assert groups == [[1, 3], [2, 4]]


def test_group_of_no_model_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        grouped([1], 0)


@pytest.mark.claim("nas", 75)
def test_metrics_are_those_of_the_models_in_order() -> None:
    assert metrics_by_model([0.1, 0.2, 0.3], 3) == [0.1, 0.2, 0.3]


@pytest.mark.claim("nas", 75)
@pytest.mark.parametrize("metrics", [[0.1], 0.1, [0.1, 0.2, 0.3]])
def test_metrics_of_another_number_are_refused(metrics: Any) -> None:
    with pytest.raises(ValueError, match="must report a list of 2 metrics"):
        metrics_by_model(metrics, 2)

"""One objective or several, and limits on outcomes."""

import math

import pytest

from nni.hpo.objectives import objectives_of


def test_a_mode_alone_is_about_the_default_metric() -> None:
    one = objectives_of("maximize")

    assert not one.several
    assert one.losses(3) == (-3.0,)
    assert one.losses({"default": 3, "cost": 9}) == (-3.0,)
    assert one.losses({"cost": 9}) is None


def test_several_metrics_have_a_mode_each() -> None:
    two = objectives_of({"accuracy": "maximize", "cost": "minimize"})

    assert two.several
    assert two.losses({"accuracy": 0.9, "cost": 5}) == (-0.9, 5.0)
    assert two.numbers({"accuracy": 0.9, "cost": 5, "x": 1}) == {"accuracy": 0.9, "cost": 5.0}
    assert two.losses({"accuracy": 0.9}) is None
    assert two.losses({"accuracy": math.nan, "cost": 1}) is None
    assert two.losses(3.0) is None


def test_excess_sums_up_what_is_beyond_the_limits() -> None:
    limited = objectives_of(
        "minimize", [{"metric": "cost", "max": 5}, {"metric": "latency", "max": 0.5}]
    )

    assert limited.excess({"default": 1, "cost": 5, "latency": 0.1}) == 0.0
    assert limited.excess({"default": 1, "cost": 7, "latency": 1.5}) == 3.0
    assert limited.excess({"default": 1, "cost": 1}) == math.inf
    assert limited.excess(1.0) == math.inf


@pytest.mark.parametrize(
    ("mode", "limits", "reason"),
    [
        ("max", None, "optimize_mode must be 'maximize' or 'minimize'"),
        ({}, None, "or a dict of metric"),
        (["maximize"], None, "or a dict of metric"),
        ({"a": "up"}, None, "got 'up'"),
        ({"": "maximize"}, None, "not empty"),
        ({1: "maximize"}, None, "must be a string"),
        ("minimize", [{"metric": "a"}], "'metric' and 'max'"),
        ("minimize", [{"metric": "a", "max": "1"}], "must be a number"),
        ("minimize", [{"metric": "a", "max": math.nan}], "must be a number"),
    ],
)
def test_what_is_no_objective_is_refused(mode: object, limits: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        objectives_of(mode, limits)  # type: ignore[arg-type] # what a user may write

"""Configurations and samples of users beside the search spaces of built-in algorithms."""

from typing import Any

import pytest

from nni.experiment.errors import ConfigError
from nni.experiment.parameter_checks import broken_parameters, check_parameters, sort_samples
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "choice", "_value": ["a", "b"]},
}
CUSTOM = config_pb2.CustomClass(class_name="my.Tuner")
GOOD = {"x": 0.5, "y": "a"}


def config_of(space: object = SPACE, **algorithms: Any) -> config_pb2.ExperimentConfig:
    algorithms = algorithms or {"tuner": config_pb2.AlgorithmConfig(name="TPE")}
    return config_pb2.ExperimentConfig(search_space=to_value(space), **algorithms)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"x": 5, "y": "a"}, "'x'"),
        ({"x": 0.5, "y": "c"}, "'y'"),
        ({"x": 0.5}, "missing ['y']"),
        ({"x": 0.5, "y": "a", "z": 1}, "unknown ['z']"),
        ([0.5, "a"], "must be a dict"),
    ],
)
def test_parameters_outside_the_space_are_named(parameters: object, named: str) -> None:
    assert named in broken_parameters(parameters, config_of())


def test_long_constraint_is_shown_by_its_beginning() -> None:
    long = " and ".join(["x < 0.1"] * 100)

    reason = broken_parameters(GOOD, config_of({**SPACE, "_constraints": [long]}))

    assert "x < 0.1" in reason
    assert len(reason) < 300


def test_keys_that_an_advisor_adds_are_allowed() -> None:
    config = config_of(advisor=config_pb2.AlgorithmConfig(name="BOHB"))

    assert broken_parameters({**GOOD, "TRIAL_BUDGET": 3}, config) == ""


@pytest.mark.parametrize(
    ("space", "tuner"),
    [
        (SPACE, config_pb2.AlgorithmConfig(custom=CUSTOM)),
        (SPACE, config_pb2.AlgorithmConfig(name="NotKnown")),
        (
            {"combine_params": {"_type": "choice", "_value": [{"a": 1}]}},
            config_pb2.AlgorithmConfig(name="BatchTuner"),
        ),
        ([1, 2], config_pb2.AlgorithmConfig(name="TPE")),
    ],
)
def test_what_only_the_algorithm_knows_is_left_to_it(
    space: object, tuner: config_pb2.AlgorithmConfig
) -> None:
    assert broken_parameters({"x": 7}, config_of(space, tuner=tuner)) == ""


def test_one_choice_of_plain_dicts_is_a_space_for_other_tuners() -> None:
    config = config_of({"layer": {"_type": "choice", "_value": [{"size": 1}, {"size": 2}]}})

    assert broken_parameters({"layer": {"size": 2}}, config) == ""
    assert "'layer'" in broken_parameters({"layer": {"size": 3}}, config)


def test_error_has_field_rule_and_remedy() -> None:
    with pytest.raises(ConfigError, match=r"--parameters must lie in .*'x'.*\(or --no-check\)"):
        check_parameters("--parameters", {**GOOD, "x": 2}, config_of(), "or --no-check")


def test_samples_are_sorted_with_reasons() -> None:
    samples = [
        {"parameter": GOOD, "value": 1},
        {"parameter": GOOD, "value": {"default": 2, "loss": 3}},
        {"parameter": {**GOOD, "x": 9}, "value": 1},
        {"parameter": {**GOOD, "x": 9}, "value": 1},
        {"parameter": GOOD},
        {"value": 1},
        {"parameter": GOOD, "value": "NaN"},
    ]

    report = sort_samples(samples, config_of())

    assert list(report.taken) == samples[:2]
    assert [number for number, _ in report.refused] == [3, 4, 5, 6, 7]
    reasons = list(report.reasons())
    assert "must lie in [0.0, 1.0], got 9 (2 samples, the first: sample 3)" in reasons[0]
    assert len(reasons) == 4


def test_custom_algorithm_gets_every_sample_with_a_value() -> None:
    tuner = config_pb2.AlgorithmConfig(custom=CUSTOM)
    samples = [{"parameter": {"any": 1}, "value": [1, 2]}, {"parameter": 1, "value": None}]

    report = sort_samples(samples, config_of(tuner=tuner))

    assert list(report.taken) == samples[:1]


def test_report_lists_the_most_frequent_reasons_only() -> None:
    samples = [{"parameter": {**GOOD, "x": number}, "value": 1} for number in range(2, 10)]

    reasons = list(sort_samples(samples, config_of()).reasons())

    assert reasons[-1] == "and 3 other reasons"
    assert len(reasons) == 6

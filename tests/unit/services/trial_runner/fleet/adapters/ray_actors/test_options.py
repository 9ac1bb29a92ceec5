from dataclasses import replace

import pytest

from svc_trial_runner.fleet.adapters.ray_actors.options import (
    RayOptions,
    option_problems,
    parse_options,
)
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentName, AgentOrder

ORDER = AgentOrder(
    AgentName("0123abcd", "exp-a", 1), AgentCredentials("", "", ""), slots=4, gpus_per_trial=2
)


def test_section_without_options_is_the_cluster_of_this_machine() -> None:
    assert parse_options({"platform": "ray", "slots": 2}) == RayOptions()
    assert option_problems({"platform": "ray", "slots": 2}) == []


def test_agent_asks_for_a_cpu_for_each_slot_and_the_gpus_of_its_trials() -> None:
    assert RayOptions().request(ORDER) == {"CPU": 4.0, "GPU": 8.0}


def test_given_resources_replace_those_of_slots_and_trials() -> None:
    options = parse_options(
        {"numCpus": 0.5, "numGpus": 1, "memory": "2G", "resources": {"special": 1}}
    )

    assert options.request(ORDER) == {
        "CPU": 0.5,
        "GPU": 1.0,
        "memory": 2.0 * 1024**3,
        "special": 1.0,
    }


def test_zero_is_no_request() -> None:
    assert parse_options({"numCpus": 0, "numGpus": 0}).request(ORDER) == {}


def test_agent_of_one_trial_asks_for_one_slot() -> None:
    assert parse_options({"reuseMode": False}).request(ORDER) == {"CPU": 1.0, "GPU": 2.0}


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("address", "ray://head:10001", "must be auto, or host:port"),
        ("address", 7, "text in one line"),
        ("namespace", "a b", "letters"),
        ("numCpus", -1, "at least 0"),
        ("numCpus", True, "at least 0"),
        ("numGpus", "two", "at least 0"),
        ("resources", {"special": 0}, "above 0"),
        ("resources", ["special"], "above 0"),
        ("resources.GPU", {"GPU": 1}, "custom resource"),
        ("memory", "much", "a size"),
        ("runtimeEnv", ["pip"], "a mapping"),
        ("schedulingStrategy", "PACK", "DEFAULT or SPREAD"),
        ("setupLines", [1], "a list of texts"),
        ("pythonPath", "a\nb", "text in one line"),
        ("home", "nni", "an absolute path"),
        ("reuseMode", "no", "true or false"),
        ("pollIntervalSeconds", 0, "at least 0.1"),
    ],
)
def test_broken_rule_is_named_with_its_field(name: str, value: object, rule: str) -> None:
    problems = option_problems({name.partition(".")[0]: value})

    assert [problem.field for problem in problems] == [name]
    assert rule in problems[0].rule


def test_strategy_and_placement_group_exclude_each_other() -> None:
    problems = option_problems({"schedulingStrategy": "SPREAD", "placementGroup": "group"})

    assert [problem.rule for problem in problems] == ["must not be given with placementGroup"]


@pytest.mark.parametrize(
    "options",
    [
        {"pollIntervalSeconds": 0.1},
        {"numCpus": 0},
        {"home": "~/nni"},
        {"home": "/nni"},
        {"schedulingStrategy": "DEFAULT"},
        {"placementGroup": "group"},
        {"runtimeEnv": {}},
        {"resources": {"special": 0.5}},
        {"address": "head:6379"},
    ],
)
def test_value_at_a_limit_has_no_problem(options: dict[str, object]) -> None:
    assert option_problems(options) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pollIntervalSeconds", 0.09),
        ("pollIntervalSeconds", float("inf")),
        ("numCpus", float("nan")),
        ("resources", {7: 1}),
        ("resources", {"special": -1}),
        ("runtimeEnv", {7: "a"}),
        ("pythonPath", 7),
    ],
)
def test_value_beyond_a_limit_counts_as_not_given(name: str, value: object) -> None:
    (problem,) = option_problems({name: value})

    assert problem.field == name
    assert parse_options({name: value}) == RayOptions()


@pytest.mark.parametrize(
    ("name", "shown"), [("numCpus", f"'{'a' * 79}"), ("namespace", f"'{'a' * 79}")]
)
def test_long_value_is_shown_by_its_first_80_characters(name: str, shown: str) -> None:
    (problem,) = option_problems({name: "a" * 100})

    assert problem.value == shown


def test_trials_that_ask_for_no_gpus_get_none() -> None:
    assert RayOptions().request(replace(ORDER, gpus_per_trial=None)) == {"CPU": 4.0}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numCpus", 10**400),
        ("numGpus", float("inf")),
        ("pollIntervalSeconds", 10**400),
        ("resources", {"special": 10**400}),
        ("resources", {"special": float("nan")}),
        ("memory", "9" * 400),
    ],
)
def test_number_that_no_machine_has_is_named(name: str, value: object) -> None:
    (problem,) = option_problems({name: value})

    assert problem.field == name


@pytest.mark.parametrize(
    "address",
    ["head", "head:", ":6379", "head:123456", "a b:6379", "u@head:6379", "auto:1:2", "auto\n"],
)
def test_address_is_that_of_one_head(address: str) -> None:
    (problem,) = option_problems({"address": address})

    assert problem.field == "address"


@pytest.mark.parametrize("namespace", ["a", "a" * 64, "A.b_c-1"])
def test_namespace_is_a_word(namespace: str) -> None:
    assert option_problems({"namespace": namespace}) == []


@pytest.mark.parametrize("namespace", ["a" * 65, "a/b", "é"])
def test_namespace_that_is_no_word_is_refused(namespace: str) -> None:
    (problem,) = option_problems({"namespace": namespace})

    assert problem.field == "namespace"


@pytest.mark.parametrize(
    ("name", "own"), [("CPU", "numCpus"), ("GPU", "numGpus"), ("memory", "memory")]
)
def test_resource_that_has_an_option_is_refused_as_a_custom_one(name: str, own: str) -> None:
    (problem,) = option_problems({"resources": {"special": 1, name: 1}})

    assert (problem.field, problem.value) == (f"resources.{name}", name)
    assert problem.remedy == f"use {own}"


def test_usual_options_are_those_of_this_machine() -> None:
    options = parse_options({})

    assert (options.address, options.namespace, options.poll_interval_seconds) == (
        "auto", "nni", 2.0
    )  # fmt: skip
    assert options.reuse_mode


@pytest.mark.parametrize(("slots", "gpus"), [(1, 2.0), (3, 6.0)])
def test_gpus_of_trials_are_multiplied_by_the_slots(slots: int, gpus: float) -> None:
    asked = RayOptions(num_cpus=0.0).request(replace(ORDER, slots=slots))

    assert asked == {"GPU": gpus}

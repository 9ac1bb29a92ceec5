"""Limits of partitions and nodes."""

import pytest

from svc_trial_runner.fleet.adapters.slurm.listings import ComputeNode, Partition
from svc_trial_runner.fleet.adapters.slurm.options import SlurmOptions
from svc_trial_runner.fleet.adapters.slurm.partition_limits import broken_limits, chosen_partition

PARTITIONS = [
    Partition("main", is_default=True, max_time_s=3600, default_time_s=600),
    Partition("gpu", max_cpus_per_node=4, accounts=("lab",), denied_qos=("low",)),
    Partition("old", is_up=False),
    Partition("empty"),
]
NODES = [
    ComputeNode("n1", cpus=8, memory_mebibytes=4000, gres={}, partitions=("main",)),
    ComputeNode("n2", cpus=16, memory_mebibytes=8000, gres={"gpu": 2}, partitions=("gpu", "old")),
]


def broken(options: SlurmOptions) -> list[str]:
    return [problem.field for problem in broken_limits(options, PARTITIONS, NODES)]


def test_default_partition_is_chosen() -> None:
    found = chosen_partition(SlurmOptions(), PARTITIONS)

    assert found is not None
    assert found.name == "main"


@pytest.mark.parametrize(
    "options",
    [
        SlurmOptions(),
        SlurmOptions(time_limit="1h", cpus=8, memory="4000M"),
        SlurmOptions(partition="gpu", account="lab", gres="gpu:2", cpus=4),
        SlurmOptions(partition="main,gpu", cpus=100),
    ],
)
def test_request_within_the_limits_is_accepted(options: SlurmOptions) -> None:
    assert broken(options) == []


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (SlurmOptions(partition="nope"), "partition"),
        (SlurmOptions(partition="old"), "partition"),
        (SlurmOptions(partition="empty"), "partition"),
        (SlurmOptions(time_limit="2h"), "timeLimit"),
        (SlurmOptions(max_trial_duration="10m"), "maxTrialDuration"),
        (SlurmOptions(cpus=9), "cpus"),
        (SlurmOptions(memory="5G"), "memory"),
        (SlurmOptions(gres="gpu:1"), "gres"),
        (SlurmOptions(partition="gpu", account="lab", gres="gpu:3"), "gres"),
        (SlurmOptions(partition="gpu", account="lab", cpus=5), "cpus"),
        (SlurmOptions(partition="gpu", account="guests"), "account"),
        (SlurmOptions(partition="gpu", qos="low"), "qos"),
    ],
)
def test_request_beyond_a_limit_names_its_field(options: SlurmOptions, field: str) -> None:
    assert broken(options) == [field]


def test_limit_is_named_in_the_rule() -> None:
    (problem,) = broken_limits(SlurmOptions(time_limit="2h"), PARTITIONS, NODES)

    assert problem.rule == "must be at most 0-01:00:00, the limit of main"


def test_cluster_without_a_default_partition_wants_one() -> None:
    (problem,) = broken_limits(SlurmOptions(), PARTITIONS[1:], NODES)

    assert "must be given" in problem.rule
    assert "gpu, old, empty" in problem.remedy


def test_partition_that_denies_an_account_or_a_quality_of_service_refuses_it() -> None:
    partition = Partition("main", is_default=True, denied_accounts=("guests",), qos=("high",))

    def fields(options: SlurmOptions) -> list[str]:
        return [one.field for one in broken_limits(options, [partition], NODES)]

    assert fields(SlurmOptions(account="guests", qos="low")) == ["account", "qos"]
    assert fields(SlurmOptions(account="lab", qos="high")) == []


@pytest.mark.parametrize(("memory", "fields"), [("1000M", []), ("1001M", ["memory"])])
def test_memory_has_the_limit_of_the_partition(memory: str, fields: list[str]) -> None:
    partition = Partition("main", is_default=True, max_memory_mebibytes=1000)

    found = broken_limits(SlurmOptions(memory=memory), [partition], NODES)

    assert [problem.field for problem in found] == fields


@pytest.mark.parametrize(("duration", "fields"), [("9m", []), ("541s", ["maxTrialDuration"])])
def test_trial_and_grace_fit_into_the_usual_time_of_the_partition(
    duration: str, fields: list[str]
) -> None:
    assert broken(SlurmOptions(max_trial_duration=duration, grace_seconds=60)) == fields


def test_node_that_names_no_resources_has_none() -> None:
    nodes = [ComputeNode("n1", cpus=1, partitions=("main",))]

    found = broken_limits(SlurmOptions(gres="gpu:1"), PARTITIONS, nodes)

    assert [problem.rule for problem in found] == ["must be at most gpu:0, what a node of main has"]


@pytest.mark.parametrize(
    ("options", "rule", "value", "remedy"),
    [
        (SlurmOptions(partition="nope"), "must be a partition of the cluster", "nope",
         "there are: main, gpu, old, empty"),
        (SlurmOptions(partition="old"), "must take jobs, and is down", "old",
         "sinfo shows those that do"),
        (SlurmOptions(partition="empty"), "must have nodes, and has none", "empty", ""),
        (SlurmOptions(cpus=9), "must be at most 8, what a node of main has", "9",
         "lower it, or choose another partition"),
        (SlurmOptions(memory="5G"), "must be at most 4000M, what a node of main has", "5G",
         "lower it, or choose another partition"),
        (SlurmOptions(partition="gpu", account="lab", gres="gpu:3"),
         "must be at most gpu:2, what a node of gpu has", "gpu:3",
         "lower it, or choose another partition"),
        (SlurmOptions(partition="gpu", account="guests"),
         "must be allowed by the partition gpu", "guests", "it allows: lab"),
        (SlurmOptions(partition="gpu", qos="low"),
         "must be allowed by the partition gpu", "low", "choose another one"),
        (SlurmOptions(max_trial_duration="10m"),
         "must fit into the limit of main, 0-00:10:00", "10m", "set timeLimit, or lower it"),
    ],
)  # fmt: skip
def test_broken_limit_is_explained(
    options: SlurmOptions, rule: str, value: str, remedy: str
) -> None:
    (problem,) = broken_limits(options, PARTITIONS, NODES)

    assert (problem.rule, problem.value, problem.remedy) == (rule, value, remedy)


def test_memory_that_the_partition_limits_is_named_by_that_limit() -> None:
    partition = Partition("main", is_default=True, max_memory_mebibytes=1000)

    (problem,) = broken_limits(SlurmOptions(memory="2G"), [partition], NODES)

    assert problem.rule == "must be at most 1000M, what a node of main has"


def test_cluster_without_partitions_has_none_to_choose_from() -> None:
    (problem,) = broken_limits(SlurmOptions(partition="gpu"), [], NODES)

    assert problem.remedy == "there are: none"


def test_time_limit_of_the_section_counts_instead_of_that_of_the_partition() -> None:
    assert broken(SlurmOptions(time_limit="1h", max_trial_duration="59m")) == []


def test_largest_node_of_the_partition_counts() -> None:
    nodes = [
        ComputeNode("a", cpus=2, memory_mebibytes=8000, gres={"gpu": 1}, partitions=("main",)),
        ComputeNode("b", cpus=8, memory_mebibytes=1000, gres={"gpu": 4}, partitions=("x", "main")),
        ComputeNode("c", cpus=99, memory_mebibytes=99_000, gres={"gpu": 9}, partitions=("x",)),
    ]

    def fields(options: SlurmOptions) -> list[str]:
        return [one.field for one in broken_limits(options, PARTITIONS, nodes)]

    assert fields(SlurmOptions(cpus=8, memory="8000M", gres="gpu:4")) == []
    assert fields(SlurmOptions(cpus=9, memory="8001M", gres="gpu:5")) == ["cpus", "memory", "gres"]

"""Limits of a cluster that a section breaks: Slurm accepts such jobs, and they pend for ever."""

from collections.abc import Iterator, Sequence
from typing import Final

from svc_trial_runner.fleet.adapters.slurm.listings import ComputeNode, Partition
from svc_trial_runner.fleet.adapters.slurm.options import SlurmOptions
from svc_trial_runner.fleet.adapters.slurm.quantities import (
    format_time_limit,
    parse_gres,
    parse_mebibytes,
    parse_time_limit,
)
from svc_trial_runner.fleet.domain.agents import PlatformProblem

_OTHER_PARTITION: Final = "lower it, or choose another partition"


def chosen_partition(options: SlurmOptions, partitions: Sequence[Partition]) -> Partition | None:
    """Return the partition of the section, else the default one; None: there is none."""
    for partition in partitions:
        if partition.name == options.partition or (not options.partition and partition.is_default):
            return partition
    return None


def nodes_of(partition: Partition, nodes: Sequence[ComputeNode]) -> list[ComputeNode]:
    """Return the nodes of a partition."""
    return [node for node in nodes if partition.name in node.partitions]


def broken_limits(
    options: SlurmOptions, partitions: Sequence[Partition], nodes: Sequence[ComputeNode]
) -> list[PlatformProblem]:
    """Return problems of options that exceed the limits of their partition and its nodes.

    Args:
        options: of the section.
        partitions: of the cluster.
        nodes: of the cluster; those of the partition count.
    """
    # `--partition=a,b` leaves the choice to Slurm: no single limit holds.
    if "," in options.partition:
        return []
    partition = chosen_partition(options, partitions)
    if partition is None:
        names = ", ".join(one.name for one in partitions) or "none"
        rule = "must be a partition of the cluster"
        if not options.partition:
            rule = "must be given: the cluster has no default partition"
        return [PlatformProblem("partition", rule, options.partition, f"there are: {names}")]
    return [
        *_permissions(options, partition),
        *_times(options, partition),
        *_resources(options, partition, nodes_of(partition, nodes)),
    ]


def _permissions(options: SlurmOptions, partition: Partition) -> Iterator[PlatformProblem]:
    if not partition.is_up:
        yield PlatformProblem(
            "partition", "must take jobs, and is down", partition.name, "sinfo shows those that do"
        )
    for field, value, allowed, denied in (
        ("account", options.account, partition.accounts, partition.denied_accounts),
        ("qos", options.qos, partition.qos, partition.denied_qos),
    ):
        if value and ((allowed and value not in allowed) or value in denied):
            remedy = f"it allows: {', '.join(allowed)}" if allowed else "choose another one"
            rule = f"must be allowed by the partition {partition.name}"
            yield PlatformProblem(field, rule, value, remedy)


def _times(options: SlurmOptions, partition: Partition) -> Iterator[PlatformProblem]:
    limit_s, largest_s = options.time_limit_s, partition.max_time_s
    if limit_s and largest_s and limit_s > largest_s:
        rule = f"must be at most {format_time_limit(largest_s)}, the limit of {partition.name}"
        yield PlatformProblem("timeLimit", rule, options.time_limit, _OTHER_PARTITION)
    duration_s = parse_time_limit(options.max_trial_duration)
    given_s = limit_s or partition.job_time_s
    if not limit_s and duration_s and given_s and duration_s + options.grace_seconds > given_s:
        rule = f"must fit into the limit of {partition.name}, {format_time_limit(given_s)}"
        yield PlatformProblem(
            "maxTrialDuration", rule, options.max_trial_duration, "set timeLimit, or lower it"
        )


def _resources(
    options: SlurmOptions, partition: Partition, nodes: Sequence[ComputeNode]
) -> Iterator[PlatformProblem]:
    memory = parse_mebibytes(options.memory) or 0
    cpus = options.cpus or 1
    most_cpus = min(
        max((node.cpus for node in nodes), default=0), partition.max_cpus_per_node or 1 << 30
    )
    most_memory = min(
        max((node.memory_mebibytes for node in nodes), default=0),
        partition.max_memory_mebibytes or 1 << 60,
    )
    if not nodes:
        yield PlatformProblem("partition", "must have nodes, and has none", partition.name)
        return
    if cpus > most_cpus:
        rule = f"must be at most {most_cpus}, what a node of {partition.name} has"
        yield PlatformProblem("cpus", rule, str(cpus), _OTHER_PARTITION)
    if memory > most_memory:
        rule = f"must be at most {most_memory}M, what a node of {partition.name} has"
        yield PlatformProblem("memory", rule, options.memory, _OTHER_PARTITION)
    for name, count in parse_gres(options.gres).items():
        most = max(((node.gres or {}).get(name, 0) for node in nodes), default=0)
        if count > most:
            rule = f"must be at most {name}:{most}, what a node of {partition.name} has"
            yield PlatformProblem("gres", rule, options.gres, _OTHER_PARTITION)

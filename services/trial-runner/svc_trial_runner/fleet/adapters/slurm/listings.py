"""Output of Slurm's commands as values; unknown fields are passed over."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from svc_trial_runner.fleet.adapters.slurm.job_names import agent_of_job
from svc_trial_runner.fleet.adapters.slurm.quantities import (
    parse_gres,
    parse_indices,
    parse_mebibytes,
    parse_time_limit,
)
from svc_trial_runner.fleet.domain.agents import AgentName

SQUEUE_FORMAT: Final = "%i|%j|%T|%N|%r"
"""Job, name, state, nodes and reason; the reason is last, since it may hold any character."""
SACCT_FORMAT: Final = "JobID,JobName,State,ExitCode,NodeList"


class JobStage(Enum):
    """Stages of an agent's job: pending, starting, running, ended."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


_STAGES: Final[Mapping[JobStage, str]] = {
    JobStage.PENDING: "PENDING REQUEUED REQUEUE_FED REQUEUE_HOLD SPECIAL_EXIT RESV_DEL_HOLD",
    JobStage.STARTING: "CONFIGURING POWER_UP_NODE",
    JobStage.RUNNING: "RUNNING COMPLETING RESIZING SIGNALING STAGE_OUT STOPPED SUSPENDED",
    JobStage.ENDED: "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED "
    "NODE_FAIL OUT_OF_MEMORY PREEMPTED RECONFIG_FAIL REVOKED TIMEOUT",
}
_STAGE_OF: Final = {state: stage for stage, text in _STAGES.items() for state in text.split()}
_COMPACT: Final = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING",
    "CG": "COMPLETING", "DL": "DEADLINE", "F": "FAILED", "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING",
    "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED", "RH": "REQUEUE_HOLD", "RQ": "REQUEUED",
    "RS": "RESIZING", "RV": "REVOKED", "S": "SUSPENDED", "SE": "SPECIAL_EXIT",
    "SI": "SIGNALING", "SO": "STAGE_OUT", "ST": "STOPPED", "TO": "TIMEOUT",
}  # fmt: skip
_KEY: Final = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/:&-]*)=")
_NONE: Final = frozenset({"", "(null)", "N/A", "n/a", "None", "UNLIMITED", "NONE"})


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """Slurm job, or task of an array, of one agent: id, state, reason, nodes, exit code."""

    id: str
    """`12`, or `12_3` for a task of an array."""
    agent: AgentName
    state: str
    """Slurm's word, long form: `PENDING`."""
    reason: str = ""
    nodes: str = ""
    exit_code: str = ""
    """`status:signal`; empty: not known."""

    @property
    def stage(self) -> JobStage:
        """Stage of the job by its state; RUNNING if unknown, so that no agent is started twice."""
        return _STAGE_OF.get(self.state, JobStage.RUNNING)


class TruncatedOutputError(ValueError):
    """Error: the output of a command ends within a line, so its list of jobs is incomplete."""


def long_state(text: str) -> str:
    """Return the long form of a state such as `PD`, `CANCELLED by 0` or `COMPLETED+`."""
    words = re.split(r"[\s,+]", text.strip(), maxsplit=1)
    return _COMPACT.get(words[0].upper(), words[0].upper())


def parse_squeue(output: str) -> list[SlurmJob]:
    """Return the agents' jobs in the output of `squeue --noheader --array` with `SQUEUE_FORMAT`.

    Lines that are not of this form, such as warnings, are passed over.

    Raises:
        TruncatedOutputError: the last line is not complete.
    """
    return [
        job for line in _lines(output) for job in _queued(line.split("|", SQUEUE_FORMAT.count("|")))
    ]


def _queued(parts: list[str]) -> Iterator[SlurmJob]:
    if len(parts) <= SQUEUE_FORMAT.count("|"):
        return
    job_id, name, state, nodes, reason = parts
    for task in _tasks(job_id.strip()):
        agent = agent_of_job(task, name)
        if agent is not None:
            yield SlurmJob(task, agent, long_state(state), _text(reason), _text(nodes))


def parse_sacct(output: str) -> list[SlurmJob]:
    """Return the agents' jobs in the output of `sacct --parsable2 --noheader -X`.

    The last line of a job counts: a requeued job has several.

    Raises:
        TruncatedOutputError: the last line is not complete.
    """
    found: dict[str, SlurmJob] = {}
    for line in _lines(output):
        parts = line.split("|")
        if len(parts) <= SACCT_FORMAT.count(","):
            continue
        job_id, name, state, code, nodes = parts[:5]
        for task in _tasks(job_id.strip()):
            agent = agent_of_job(task, name)
            if agent is not None:
                nodes = "" if nodes == "None assigned" else _text(nodes)
                found[task] = SlurmJob(task, agent, long_state(state), "", nodes, code)
    return list(found.values())


def parse_scontrol_jobs(output: str) -> list[SlurmJob]:
    """Return the agents' jobs in the output of `scontrol show job --oneliner`.

    Raises:
        TruncatedOutputError: the last line is not complete.
    """
    return [job for line in _lines(output) for job in _shown(parse_fields(line))]


def _shown(fields: Mapping[str, str]) -> Iterator[SlurmJob]:
    job_id = fields.get("JobId", "")
    if "ArrayJobId" in fields:
        job_id = f"{fields['ArrayJobId']}_[{fields.get('ArrayTaskId', '')}]"
    for task in _tasks(job_id):
        agent = agent_of_job(task, fields.get("JobName", ""))
        if agent is not None:
            yield SlurmJob(
                task,
                agent,
                long_state(fields.get("JobState", "UNKNOWN")),
                _text(fields.get("Reason", "").replace("_", " ")),
                _text(fields.get("NodeList", "")),
                fields.get("ExitCode", ""),
            )


def parse_fields(line: str) -> dict[str, str]:
    """Return the fields of a line `Key=Value Key=Value`; values may hold blanks and `=`.

    Of a key that occurs twice the first one counts: a comment cannot replace a field before it.
    """
    matches = list(_KEY.finditer(line))
    found: dict[str, str] = {}
    for match, following in zip(matches, [*matches[1:], None], strict=True):
        end = len(line) if following is None else following.start()
        found.setdefault(match[1], line[match.end() : end].strip())
    return found


@dataclass(frozen=True, slots=True)
class Partition:
    """Partition of the cluster with its limits; None and empty: no limit."""

    name: str
    is_up: bool = True
    is_default: bool = False
    max_time_s: int | None = None
    default_time_s: int | None = None
    max_cpus_per_node: int | None = None
    max_memory_mebibytes: int | None = None
    accounts: tuple[str, ...] = ()
    denied_accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    denied_qos: tuple[str, ...] = ()

    @property
    def job_time_s(self) -> int | None:
        """Time limit, in seconds, of a job that sets none; None: no limit."""
        return self.default_time_s or self.max_time_s


def parse_partitions(output: str) -> list[Partition]:
    """Return the partitions in the output of `scontrol show partition --oneliner`.

    Raises:
        TruncatedOutputError: the last line is not complete.
    """
    found = (parse_fields(line) for line in _lines(output))
    return [_partition(fields) for fields in found if "PartitionName" in fields]


def _partition(fields: Mapping[str, str]) -> Partition:
    return Partition(
        name=fields["PartitionName"],
        is_up=fields.get("State", "UP") in {"UP", "INACTIVE"},
        is_default=fields.get("Default") == "YES",
        max_time_s=parse_time_limit(fields.get("MaxTime", "")),
        default_time_s=parse_time_limit(fields.get("DefaultTime", "")),
        max_cpus_per_node=_number(fields.get("MaxCPUsPerNode", "")),
        max_memory_mebibytes=parse_mebibytes(fields.get("MaxMemPerNode", "")),
        accounts=_names(fields.get("AllowAccounts", "")),
        denied_accounts=_names(fields.get("DenyAccounts", "")),
        qos=_names(fields.get("AllowQos", "")),
        denied_qos=_names(fields.get("DenyQos", "")),
    )


@dataclass(frozen=True, slots=True)
class ComputeNode:
    """Compute node: name, address, total CPUs, memory and generic resources, partitions."""

    name: str
    address: str = ""
    host: str = ""
    cpus: int = 0
    memory_mebibytes: int = 0
    gres: Mapping[str, int] | None = None
    partitions: tuple[str, ...] = ()


def parse_nodes(output: str) -> list[ComputeNode]:
    """Return the nodes in the output of `scontrol show node --oneliner`.

    Raises:
        TruncatedOutputError: the last line is not complete.
    """
    found = (parse_fields(line) for line in _lines(output))
    return [
        ComputeNode(
            name=fields["NodeName"],
            address=fields.get("NodeAddr", ""),
            host=fields.get("NodeHostName", ""),
            cpus=_number(fields.get("CPUTot", "")) or 0,
            memory_mebibytes=parse_mebibytes(fields.get("RealMemory", "")) or 0,
            gres=parse_gres(fields.get("Gres", "").replace("(null)", "")),
            partitions=_names(fields.get("Partitions", "")),
        )
        for fields in found
        if "NodeName" in fields
    ]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Settings of the cluster: accounting, largest array index, time from TERM to KILL."""

    has_accounting: bool
    """True if `sacct` knows ended jobs."""
    array_index_limit: int
    """Largest index of a task of an array; 0: there are no arrays."""
    kill_wait_s: float = 30.0
    """Time from TERM to KILL when a job is cancelled or preempted; Slurm's default is 30 s."""


def read_cluster(output: str) -> Cluster:
    """Return the settings in the output of `scontrol show config`, defaults for missing ones."""
    pairs = (line.partition("=") for line in output.splitlines())
    found = {name.strip(): value.strip() for name, mark, value in pairs if mark}
    accounting = found.get("AccountingStorageType", "")
    return Cluster(
        has_accounting=accounting not in _NONE and not accounting.endswith("/none"),
        array_index_limit=max(0, (_number(found.get("MaxArraySize", "")) or 1) - 1),
        kill_wait_s=float(_number(found.get("KillWait", "").partition(" ")[0]) or 30),
    )


def _lines(output: str) -> list[str]:
    if output and not output.endswith("\n"):
        raise TruncatedOutputError(output[-80:])
    return output.splitlines()


def _tasks(job_id: str) -> list[str]:
    """Return the job or task ids of `12`, `12_3`, `12_[3,5-7]`; empty: it is none of these."""
    match = re.match(r"(\d+)_\[?([\d,:%-]+)", job_id)
    if match is None:
        return [job_id] if re.match(r"\d+\Z", job_id) else []
    return [f"{match[1]}_{index}" for index in parse_indices(match[2])]


def _text(value: str) -> str:
    return "" if value.strip() in _NONE else value.strip()


def _names(value: str) -> tuple[str, ...]:
    return () if value in {*_NONE, "ALL"} else tuple(value.split(","))


def _number(value: str) -> int | None:
    return int(value) if value.isdigit() else None

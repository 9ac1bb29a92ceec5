"""Slurm's reasons for pending, ended and failed jobs: their meaning and what a person can do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from svc_trial_runner.fleet.adapters.slurm.listings import JobStage, SlurmJob


@dataclass(frozen=True, slots=True)
class Cause:
    """Meaning of a state, reason or message of Slurm, with its remedy."""

    text: str
    remedy: str = ""
    permanent: bool = False
    """True if time alone does not help."""
    field: str = ""
    """Option of the section that is the cause; empty: none."""
    is_unreachable: bool = False
    """True if Slurm does not answer; what was asked for may have been done."""


_LOWER_REQUEST: Final = "lower the request, or choose another partition"
_PENDING: Final[tuple[tuple[str, Cause], ...]] = (
    (r"Priority$", Cause("jobs of higher priority are before it")),
    (r"Resources$", Cause("it waits for free resources of the partition")),
    (r"BeginTime$", Cause("it was requeued and waits until it may start again")),
    (r"Dependency", Cause("it waits for another job", "look at --dependency in options")),
    (r"JobHeldUser|JobHeldAdmin", Cause("it is held", "scontrol release JOB")),
    (r"JobArrayTaskLimit", Cause("its array runs as many tasks at once as it may")),
    (r"ReqNodeNotAvail|Nodes required for job are DOWN", Cause(
        "its nodes are down, drained or reserved", "sinfo shows their state")),
    (r"PartitionDown|PartitionInactive", Cause(
        "the partition takes no jobs now", "sinfo shows partitions that do")),
    (r"PartitionTimeLimit", Cause(
        "it asks for more time than the partition allows", "lower timeLimit",
        permanent=True, field="timeLimit")),
    (r"PartitionNodeLimit|PartitionConfig", Cause(
        "it asks for more than the partition allows", _LOWER_REQUEST, permanent=True)),
    (r"BadConstraints", Cause(
        "no node has what it asks for", _LOWER_REQUEST, permanent=True)),
    (r"InvalidAccount", Cause(
        "the account is not valid", "sacctmgr show associations user=$USER",
        permanent=True, field="account")),
    (r"InvalidQOS|QOSNotAllowed", Cause(
        "the quality of service is not valid for it", "sacctmgr show qos",
        permanent=True, field="qos")),
    (r"(QOS|Assoc|AssocGrp|QOSGrp|MaxSubmit).*(Limit|Max)|Assoc.*Limit|QOS.*Limit", Cause(
        "a limit of the account or the quality of service is reached",
        "lower the pool's limit of agents, or wait for jobs that run")),
    (r"Licenses", Cause("it waits for a license")),
    (r"Reservation", Cause("it waits for its reservation")),
    (r"NodeDown", Cause("a node that it needs is down")),
)  # fmt: skip
"""Patterns of reasons of pending jobs; the first one that matches counts."""

_ENDED: Final[Mapping[str, Cause]] = {
    "TIMEOUT": Cause("its time limit was reached", "raise timeLimit"),
    "PREEMPTED": Cause("it was preempted by a job of higher priority"),
    "NODE_FAIL": Cause("its node failed"),
    "BOOT_FAIL": Cause("its node did not start"),
    "OUT_OF_MEMORY": Cause("it used more memory than it asked for", "raise memory"),
    "DEADLINE": Cause("its deadline was reached"),
    "CANCELLED": Cause("it was cancelled"),
    "REVOKED": Cause("another cluster of the federation runs it"),
    "LAUNCH_FAILED": Cause("it could not be started on its node", "the job's log says more"),
    "RECONFIG_FAIL": Cause("its node could not be configured"),
    "COMPLETED": Cause(""),
}
_EXIT_CODES: Final[Mapping[str, Cause]] = {
    "72": Cause(
        "the folder of NNI is not on the compute node",
        "set home to a folder on a file system that login and compute nodes share",
    ),
    "126": Cause("a program of the script cannot be run", "the job's log names it"),
    "127": Cause(
        "a program of the script was not found on the compute node",
        "set python, pythonPath or setupLines so that Python >= 3.11 is found there",
    ),
}
"""Exit codes of the script that have a meaning of their own."""

_NO_CONTROLLER: Final = (
    r"Unable to contact slurm controller|Connection (refused|timed out)|Socket timed out|"
    r"Zero Bytes were transmitted|Unable to establish controller machine|"
    r"slurm_persist_conn|Transport endpoint"
)
_REFUSALS: Final[tuple[tuple[str, Cause], ...]] = (
    (_NO_CONTROLLER, Cause(
        "Slurm's controller does not answer", "scontrol ping; jobs that run are not affected",
        is_unreachable=True)),
    (r"[Mm]unge|Protocol authentication error|Authentication", Cause(
        "Slurm's authentication does not work on this machine",
        "ask the administrator: is munged running, with the key of the cluster?",
        is_unreachable=True)),
    # Before those of QOS and time limits: Slurm names them in this message, too.
    (r"job submit limit|MaxSubmit|Job violates accounting", Cause(
        "a limit of the account or the quality of service is reached",
        "lower the pool's limit of agents, or wait for jobs that run")),
    (r"invalid partition|Invalid partition", Cause(
        "there is no such partition", "sinfo lists them", permanent=True, field="partition")),
    (r"Invalid account|account/partition|combination specified", Cause(
        "account, partition or user are not allowed together",
        "sacctmgr show associations user=$USER", permanent=True, field="account")),
    (r"Invalid qos|QOS", Cause(
        "the quality of service is not allowed", "sacctmgr show qos",
        permanent=True, field="qos")),
    (r"gres|GRES", Cause(
        "no such generic resource", "sinfo -o '%P %G' lists them", permanent=True, field="gres")),
    (r"time limit|Invalid --time|Requested time", Cause(
        "the time limit is not allowed", "sinfo -o '%P %l' lists the limits",
        permanent=True, field="timeLimit")),
    (r"Memory (specification|required)", Cause(
        "no node has so much memory", "sinfo -o '%P %m' lists it",
        permanent=True, field="memory")),
    (r"unrecognized option|invalid option|Invalid .* specification|unknown option", Cause(
        "sbatch does not know an option", "sbatch --help", permanent=True, field="options")),
    (r"node configuration is not available", Cause(
        "no node has what is asked for", _LOWER_REQUEST)),
    (r"Requested nodes? (are )?busy|allocation failure", Cause("no node is free now")),
    (r"No space left|Disk quota exceeded|quota", Cause(
        "the file system of the home folder is full", "free some room there, or set home")),
    (r"Slurm temporarily unable to accept job|Resource temporarily unavailable|slurmctld is",
     Cause("Slurm takes no jobs at the moment")),
)  # fmt: skip
"""Patterns of what commands print when they are refused."""


def pending_reason(job: SlurmJob) -> str:
    """Return why a job is pending: Slurm's reason, with meaning and remedy if they are known."""
    if not job.reason:
        return ""
    cause = pending_cause(job.reason)
    if not cause.text:
        return job.reason
    return f"{job.reason}: {cause.text}" + (f"; {cause.remedy}" if cause.remedy else "")


def pending_cause(reason: str) -> Cause:
    """Return the meaning of the reason of a pending job; its text is empty if it is unknown."""
    for pattern, cause in _PENDING:
        if re.match(pattern, reason):
            return cause
    return Cause("")


def end_reason(job: SlurmJob) -> str:
    """Return why a job has ended: Slurm's state, meaning, remedy; empty if it is COMPLETED."""
    cause = _ENDED.get(job.state)
    if cause is not None and not cause.text:
        return ""
    status, _, number = job.exit_code.partition(":")
    if cause is None:
        cause = pending_cause(job.reason) if job.reason else Cause("")
        cause = _EXIT_CODES.get(status, cause)
    words = [job.state]
    if job.reason and job.reason != "NonZeroExitCode":
        words.append(f"({job.reason})")
    if job.exit_code and job.exit_code != "0:0":
        words.append(
            f"with signal {number}" if number not in {"", "0"} else f"with exit code {status}"
        )
    text = " ".join(words)
    explained = f"{text}: {cause.text}" if cause.text else text
    return f"{explained}; {cause.remedy}" if cause.remedy else explained


def job_reason(job: SlurmJob) -> str:
    """Return why a job is pending or has ended, else its state; empty while it runs."""
    match job.stage:
        case JobStage.PENDING:
            return pending_reason(job)
        case JobStage.ENDED:
            return end_reason(job)
        case _:
            return "" if job.state in {"RUNNING", "CONFIGURING"} else job.state


def refusal(errors: str) -> Cause:
    """Return the cause of a failed command by its stderr; the text ends with Slurm's message."""
    words = " ".join(line.strip() for line in errors.splitlines() if line.strip())[:400]
    for pattern, cause in _REFUSALS:
        if re.search(pattern, words):
            return replace(cause, text=f"{cause.text}: {words}")
    return Cause(words or "the command failed without a word")

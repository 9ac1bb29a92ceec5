"""Join of Slurm's listings and the shared folder to the states of agents."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from svc_trial_runner.fleet.adapters.slurm.causes import job_reason
from svc_trial_runner.fleet.adapters.slurm.listings import JobStage, SlurmJob
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase, PlatformAgent

ENDED: Final = "ended"
PREPARED: Final = "prepared"
"""States in the report of a worker: of an agent whose end is written, and of one that never ran."""
FORGOTTEN: Final = "Slurm does not know its job any more, and it has not written how it ended"


def latest_jobs(jobs: Iterable[SlurmJob]) -> dict[AgentName, SlurmJob]:
    """Return the job of each agent; of several the one that is not over, else the last one."""
    found: dict[AgentName, SlurmJob] = {}
    for job in sorted(jobs, key=lambda one: (one.stage is not JobStage.ENDED, _number(one))):
        found[job.agent] = job
    return found


def _number(job: SlurmJob) -> int:
    return int(job.id.partition("_")[0])


def platform_agent(
    name: AgentName, state: Mapping[str, Any], job: SlurmJob | None
) -> PlatformAgent | None:
    """Merge folder and job to an agent: ENDED if Slurm knows no job, None: it was never submitted.

    Args:
        name: of the agent.
        state: of the folder, as the program of a worker reports it.
        job: that Slurm knows; None: it knows none, or has forgotten it.
    """
    host = str(state.get("host", ""))
    if job is None:
        if state["state"] == PREPARED:
            return None
        reason = _end_of_folder(state) if state["state"] == ENDED else FORGOTTEN
        return PlatformAgent(name, AgentPhase.ENDED, host, reason)
    machine = job.nodes or host
    match job.stage:
        case JobStage.PENDING:
            return PlatformAgent(name, AgentPhase.PENDING, "", job_reason(job))
        case JobStage.STARTING:
            return PlatformAgent(name, AgentPhase.STARTING, machine, job_reason(job))
        case JobStage.ENDED:
            reasons = [job_reason(job), str(state.get("reason") or "")]
            is_clean = not reasons[0]
            reason = "" if is_clean else "; ".join(one for one in reasons if one)
            return PlatformAgent(name, AgentPhase.ENDED, machine, reason)
        case JobStage.RUNNING:
            is_seen = state["state"] != PREPARED
            phase = AgentPhase.RUNNING if is_seen else AgentPhase.STARTING
            return PlatformAgent(name, phase, machine, job_reason(job))


def _end_of_folder(state: Mapping[str, Any]) -> str:
    code = state.get("exit_code")
    if code in {0, None}:
        return str(state.get("reason") or "") if code is None else ""
    return f"it ended with {code}: {state.get('reason') or 'it gives no reason'}"

"""Azure ML command jobs that run agents: what is submitted, and what a job's state means."""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any, Final
from urllib.parse import quote as quote_url

from svc_trial_runner.fleet.adapters.aml.azure_requests import mapping
from svc_trial_runner.fleet.adapters.aml.options import AmlOptions
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase, PlatformAgent

CLUSTER: Final = "AmlCompute"
COMPUTE_TYPES: Final = (CLUSTER, "ComputeInstance", "Kubernetes")
"""Kinds of compute targets that run command jobs."""
_INPUT: Final = "settings"
_SHOWN_CHARACTERS: Final = 400
_WAITING: Final = ("NotStarted", "Starting", "Provisioning", "Preparing", "Queued", "Paused")
_RUNNING: Final = ("Running", "Finalizing", "CancelRequested", "NotResponding", "Unknown")
_PHASES: Final = {
    # Azure builds the image in Preparing, and has no machine for the job before Running.
    **dict.fromkeys(_WAITING, AgentPhase.PENDING),
    **dict.fromkeys(_RUNNING, AgentPhase.RUNNING),
    **dict.fromkeys(("Completed", "Failed", "Canceled"), AgentPhase.ENDED),
}


def tag_of(installation: str) -> str:
    """Return the tag that all jobs of an installation have."""
    return f"nni-{installation}"


def job_of(
    options: AmlOptions, agent: AgentName, environment_id: str, datastore: str, path: str
) -> dict[str, Any]:
    """Return the properties of an agent's job, which gets the agent's settings as an input file.

    Args:
        options: of the section.
        agent: its name is that of the job.
        environment_id: of the image.
        datastore: that holds the settings.
        path: of the settings in the datastore.
    """
    return {
        "jobType": "Command",
        "displayName": str(agent),
        "experimentName": f"nni-{agent.pool}",
        "command": _command(options.agent.python),
        "environmentId": environment_id,
        "computeId": options.compute_id,
        "inputs": {
            _INPUT: {
                "jobInputType": "uri_file",
                "uri": f"{options.datastores_uri}/{quote_url(datastore, safe='')}/paths/{path}",
                "mode": "Download",
            }
        },
        "resources": {"instanceCount": 1},
        "tags": {tag_of(agent.installation): agent.pool},
    }


def _command(python: str) -> str:
    given, own = f'"${{{{inputs.{_INPUT}}}}}"', '"$HOME/.nni-agent/settings.json"'
    return (
        f'mkdir -p -m 700 "$HOME/.nni-agent" && (umask 077; cat {given} >{own}) '
        f"&& rm -f {given}; exec {quote(python)} -P -m svc_trial_runner --settings {own}"
    )


def status_of(job: Mapping[str, Any]) -> str:
    """Return the state of a job as Azure calls it; empty: it has none."""
    return str(mapping(job.get("properties")).get("status") or "")


def is_waiting(job: Mapping[str, Any]) -> bool:
    """Return whether a job has no machine yet."""
    return status_of(job) in _WAITING


def is_over(job: Mapping[str, Any]) -> bool:
    """Return whether a job has ended."""
    return _PHASES.get(status_of(job)) is AgentPhase.ENDED


def platform_agent(name: AgentName, job: Mapping[str, Any], compute_words: str) -> PlatformAgent:
    """Return an agent by its job's state, RUNNING if that is unknown, with Azure's reason.

    Args:
        name: of the agent.
        job: as Azure lists it.
        compute_words: state of the compute target, for a job that waits for it.
    """
    status = status_of(job)
    phase = _PHASES.get(status, AgentPhase.RUNNING)
    reason = ""
    if phase is AgentPhase.PENDING:
        reason = f"{status}: {compute_words}".strip(": ")
    elif status not in _PHASES:
        reason = f"Azure says {status or 'nothing'}"
    elif status in {"Failed", "Canceled"}:
        reason = f"{status}{_studio_words(job)}"
    return PlatformAgent(name, phase, "", reason[:_SHOWN_CHARACTERS])


def _studio_words(job: Mapping[str, Any]) -> str:
    services = mapping(mapping(job.get("properties")).get("services"))
    address = mapping(services.get("Studio")).get("endpoint")
    return f"; its log is at {address}" if address else ""


def compute_words(target: str, compute: Mapping[str, Any]) -> str:
    """Return how many nodes a compute target has, and its errors, such as a quota that is used up.

    Args:
        target: name of the compute target.
        compute: its properties.
    """
    inner = mapping(compute.get("properties"))
    words = f"{target} is {inner.get('state') or compute.get('provisioningState') or 'unknown'}"
    if compute.get("computeType") == CLUSTER:
        most = mapping(inner.get("scaleSettings")).get("maxNodeCount")
        nodes = f"{inner.get('currentNodeCount', 0)} of at most {most} nodes"
        words = f"{target} has {nodes} ({inner.get('allocationState') or 'Unknown'})"
    texts = (_error_words(one) for one in _errors(compute, inner))
    return "; ".join((words, *(text for text in dict.fromkeys(texts) if text)))


def _errors(compute: Mapping[str, Any], inner: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the errors of a compute target's provisioning and of its nodes."""
    for given in (compute.get("provisioningErrors"), inner.get("errors")):
        for one in given if isinstance(given, list) else ():
            yield mapping(mapping(one).get("error")) or mapping(one)


def _error_words(error: Mapping[str, Any]) -> str:
    words = f"{error.get('code') or ''}: {error.get('message') or ''}"
    return " ".join(words.split()).strip(": ")

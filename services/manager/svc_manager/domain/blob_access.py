"""Decisions which blobs an agent that is limited to its pool may download and upload.

Such an agent runs the code of one pool's users. It gets what the orders of its own trials name, and
checkpoints that agents have uploaded for the experiment of the trial. It stores what trials of its
own have made.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from nni_wire.pools import experiment_of_pool
from svc_manager.domain.trial import Trial

UPLOADED_KIND: Final = "uploaded"
"""First key part of the records that a checkpoint was uploaded for an experiment."""


@dataclass(frozen=True, slots=True)
class PoolAgent:
    """Name and pool of an agent that is limited to the trials of its pool."""

    name: str
    pool: str


@dataclass(frozen=True, slots=True)
class BlobDecision:
    """Decision on a request for a blob: allowed, refused with a reason, or not yet known."""

    refusal: str = ""
    """Reason of a refusal, as text; empty: it is allowed."""
    later: bool = False
    """The reason may be over soon: the claim of the attempt may not have been read yet."""


ALLOWED: Final = BlobDecision()


def uploaded_key(experiment_id: str, sha256: str) -> str:
    """Return the key of the record that a checkpoint was uploaded for an experiment.

    Example:
        >>> uploaded_key("e1", "ab")
        'uploaded/e1/ab'
    """
    return f"{UPLOADED_KIND}/{experiment_id}/{sha256}"


def serves_experiment(agent: PoolAgent, experiment_id: str) -> bool:
    """Return whether an agent's pool is shared or this experiment's own, by the pool's name alone.

    Example:
        >>> serves_experiment(PoolAgent("a1", "exp-e1"), "e2")
        False
        >>> serves_experiment(PoolAgent("a1", "gpus"), "e2")
        True
    """
    return experiment_of_pool(agent.pool) in {None, experiment_id}


def decide_download(
    agent: PoolAgent, trial: Trial | None, sha256: str, ordered: Collection[str], *, uploaded: bool
) -> BlobDecision:
    """Return ALLOWED for an ordered or uploaded blob of the agent's live trial, else why not.

    Args:
        agent: the caller.
        trial: trial that it names; None: there is no such trial.
        sha256: hash of the blob.
        ordered: hashes that the order of the trial names: its code and its parameters. Nothing that
            an agent has reported is among them, since it could name any hash.
        uploaded: whether the blob was uploaded as a checkpoint of the trial's experiment.
    """
    if trial is None or trial.pool != agent.pool:
        return _foreign(agent)
    if not trial.live or trial.runner_id not in {"", agent.name}:
        return BlobDecision(f"trial {trial.id} has ended, or another agent has it")
    if uploaded or sha256 in ordered:
        return ALLOWED
    return BlobDecision(f"no order of trial {trial.id} names this blob")


def decide_upload(agent: PoolAgent, trial: Trial | None, attempt: int) -> BlobDecision:
    """Return ALLOWED to the agent that has or lost the attempt; `later` if it is unclaimed.

    Args:
        agent: the caller.
        trial: trial that it names; None: there is no such trial.
        attempt: number of the attempt that it names.
    """
    if trial is None or trial.pool != agent.pool:
        return _foreign(agent)
    if attempt != trial.attempt:
        holders = {lost.runner_id for lost in trial.lost_attempts if lost.attempt == attempt}
    elif trial.runner_id:
        holders = {trial.runner_id}
    elif trial.live:
        return BlobDecision(f"no agent has claimed trial {trial.id} yet", later=True)
    else:  # it ended before its start was reported
        holders = {agent.name}
    if agent.name in holders:
        return ALLOWED
    return BlobDecision(f"attempt {attempt} of trial {trial.id} is not of agent {agent.name}")


def _foreign(agent: PoolAgent) -> BlobDecision:
    return BlobDecision(f"pool {agent.pool} has no such trial")

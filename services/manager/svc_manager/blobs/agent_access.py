"""Limit of agents to the blobs of their own trials."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import blob_of
from svc_common.access.current_call import limited_agent
from svc_common.errors import PermissionDeniedError, UnavailableError
from svc_common.storage.ports import BlobStore
from svc_manager.domain.blob_access import (
    BlobDecision,
    PoolAgent,
    decide_download,
    decide_upload,
    serves_experiment,
    uploaded_key,
)
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial

FindExperiment: TypeAlias = Callable[[str], Awaitable[Experiment]]
"""Returns the state of an experiment; raises NotFoundError, or that another manager owns it."""

_NO_TRIAL: Final = "it names no trial"


class AgentBlobAccess:
    """Check that an agent of a pool transfers blobs of its own trials only; others pass at once.

    The state of the trial is in memory at the manager that owns its experiment, which the call is
    forwarded to. Whether a checkpoint was uploaded for an experiment is one look into the store.

    Args:
        find: returns the state of an experiment.
        blobs: store with the records of uploaded checkpoints.
    """

    def __init__(self, find: FindExperiment, blobs: BlobStore) -> None:
        self._find = find
        self._blobs = blobs

    async def check_download(self, sha256: str, experiment_id: str, trial_id: str) -> None:
        """Raise PermissionDeniedError if an agent has no live trial that needs a blob; others pass.

        Args:
            sha256: hash of the blob.
            experiment_id: experiment that the caller names; empty: none.
            trial_id: its trial that needs the blob.

        Raises:
            PermissionDeniedError: the caller may not.
            NotFoundError: there is no such experiment.
        """
        agent = _agent()
        if agent is None:
            return
        experiment = await self._experiment(agent, experiment_id)
        trial = experiment.trials.get(trial_id)
        ordered = set() if trial is None else hashes_ordered(experiment, trial)
        uploaded = sha256 not in ordered and await self.has_uploaded(experiment_id, sha256)
        _check(agent, decide_download(agent, trial, sha256, ordered, uploaded=uploaded))

    async def check_upload(self, experiment_id: str, trial_id: str, attempt: int) -> None:
        """Raise PermissionDeniedError if an agent neither has nor lost an attempt; others pass.

        Args:
            experiment_id: experiment that the caller names; empty: none.
            trial_id: its trial.
            attempt: number of the attempt that has made the blob.

        Raises:
            PermissionDeniedError: the caller may not.
            UnavailableError: its claim of the attempt was not read yet; it tries again.
            NotFoundError: there is no such experiment.
        """
        agent = _agent()
        if agent is not None:
            experiment = await self._experiment(agent, experiment_id)
            _check(agent, decide_upload(agent, experiment.trials.get(trial_id), attempt))

    async def has_uploaded(self, experiment_id: str, sha256: str) -> bool:
        """Return whether the store has the record of a checkpoint's upload for an experiment."""
        return await self._blobs.exists(uploaded_key(experiment_id, sha256))

    async def record_upload(self, experiment_id: str, sha256: str) -> None:
        """Record that a checkpoint was uploaded for an experiment, so that its agents may have it.

        Without a record an agent could report the hash of any blob as that of its checkpoint, and
        download it.
        """
        await self._blobs.put_named(uploaded_key(experiment_id, sha256), b"")

    async def _experiment(self, agent: PoolAgent, experiment_id: str) -> Experiment:
        if not experiment_id:
            _check(agent, BlobDecision(_NO_TRIAL))
        if not serves_experiment(agent, experiment_id):
            _check(agent, BlobDecision(f"pool {agent.pool} has no such trial"))
        return await self._find(experiment_id)


def hashes_ordered(experiment: Experiment, trial: Trial) -> set[str]:
    """Return the hashes of the experiment's code archive and of the trial's large parameters."""
    config = config_pb2.ExperimentConfig.FromString(experiment.config)
    large = blob_of(value_pb2.Value.FromString(trial.parameters))
    found = {config.code_archive.sha256, "" if large is None else large.sha256}
    return found - {""}


def _agent() -> PoolAgent | None:
    """Return the caller of this call if it is an agent limited to its pool; None: it is not."""
    caller = limited_agent()
    return None if caller is None else PoolAgent(caller.name, caller.pool)


def _check(agent: PoolAgent, decision: BlobDecision) -> None:
    """Raise PermissionDeniedError, or UnavailableError for `later`, unless a decision allows it.

    Raises:
        PermissionDeniedError: it is refused.
        UnavailableError: it may be allowed soon.
    """
    if not decision.refusal:
        return
    if decision.later:
        raise UnavailableError(decision.refusal)
    raise PermissionDeniedError(
        f"agent {agent.name} may transfer blobs of its own trials only: {decision.refusal}",
        {"agent": agent.name, "pool": agent.pool},
    )

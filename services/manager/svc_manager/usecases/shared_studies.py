"""Use cases on shared studies: callers ask for trials, tell their results and renew leases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_common.errors import InvalidArgumentError
from svc_common.large_work import off_loop
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.actors.registry import ActorRegistry
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.reasons import TEXT_LIMIT
from svc_manager.converters.scalars import metric_from, set_ms
from svc_manager.domain.callers import Claim
from svc_manager.domain.inputs import AskTrial, RecordedCommand, TellTrial
from svc_manager.domain.values import ParameterSource
from svc_manager.usecases.analyses import ConstraintChecker
from svc_manager.usecases.request_checks import check_storable
from svc_manager.usecases.trials import Trials

_ID_LIMIT: Final = 64
_RENEWED_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class AskedTrial:
    """Trial that a caller runs, with its attempt and the lease."""

    trial: trial_pb2.Trial
    attempt: int
    lease_ms: int


@dataclass(frozen=True, slots=True)
class RenewedLeases:
    """Result of a lease renewal: trials that the caller has lost, lease duration of the others."""

    lost_trial_ids: Sequence[str]
    lease_ms: int


class SharedStudies:
    """Use cases of shared studies: start a trial for a caller, end it by a result, renew leases.

    Args:
        registry: registry of the actors.
        large_values: store of large values.
        trials: reads trials.
        constraints: checks given parameters; None: not checked.
    """

    def __init__(
        self,
        registry: ActorRegistry,
        large_values: LargeValues,
        trials: Trials,
        constraints: ConstraintChecker | None,
    ) -> None:
        self._registry = registry
        self._large_values = large_values
        self._trials = trials
        self._constraints = constraints

    async def ask(
        self,
        experiment_id: str,
        request_id: str,
        caller_id: str,
        parameters: value_pb2.Value | None = None,
    ) -> AskedTrial:
        """Start the next trial for a caller and return it; wait for parameters without limit.

        Args:
            experiment_id: the study.
            request_id: repeated, the ask gets the same trial.
            caller_id: process that runs it.
            parameters: of the trial; None: the next ones of the algorithm.

        Raises:
            FailedPreconditionError: there is no trial; `reason` tells why.
            InvalidArgumentError: the parameters break a constraint of the search space.
        """
        _check_id("request_id", request_id)
        _check_id("caller_id", caller_id)
        actor = await self._registry.find(experiment_id)
        encoded = b""
        if parameters is not None:
            encoded = await self._checked(actor, parameters)
        claim = await actor.ask(AskTrial(request_id, caller_id, encoded))
        trial = await self._trials.get(experiment_id, claim.trial_id)
        return AskedTrial(trial, claim.attempt, actor.experiment.settings.lease_ms)

    async def _checked(self, actor: ExperimentActor, parameters: value_pb2.Value) -> bytes:
        if parameters.WhichOneof("kind") is None:
            raise InvalidArgumentError("parameters", "must be given")
        await off_loop(parameters.ByteSize(), check_storable, parameters, "parameters")
        if self._constraints is not None:
            await self._constraints.check(actor, parameters)
        stored = await self._large_values.put(parameters)
        return stored.SerializeToString(deterministic=True)

    async def tell(
        self,
        experiment_id: str,
        trial_id: str,
        attempt: int,
        outcome: value_pb2.Value | str,
        *,
        stopped: bool = False,
    ) -> None:
        """End a trial: result, failure or stop; a repetition changes nothing, another end raises.

        Args:
            experiment_id: the study.
            trial_id: the trial.
            attempt: as `ask` returned it.
            outcome: the result, or as text why it failed.
            stopped: whether a trial without a result was stopped early.

        Raises:
            InvalidArgumentError: another result was told before.
            FailedPreconditionError: the attempt is over otherwise; `reason` tells how.
            NotFoundError: there is no such trial.
        """
        actor = await self._registry.find(experiment_id)
        if isinstance(outcome, str):
            command = TellTrial(trial_id, attempt, None, outcome[:TEXT_LIMIT], stopped)
        else:
            command = await self._result(actor, trial_id, attempt, outcome)
        await actor.submit(RecordedCommand(command, "", "TellTrial"))

    async def _result(
        self, actor: ExperimentActor, trial_id: str, attempt: int, value: value_pb2.Value
    ) -> TellTrial:
        if value.WhichOneof("kind") is None:
            raise InvalidArgumentError("value", "must be given", remedy="or tell a failure")
        await off_loop(value.ByteSize(), check_storable, value, "value")
        message = metric_pb2.Metric(type=metric_pb2.METRIC_TYPE_FINAL)
        message.value.CopyFrom(await self._large_values.put(value))
        set_ms(message.reported_at, actor.now_ms())
        sample = await self._sample(actor, trial_id, value)
        return TellTrial(trial_id, attempt, metric_from(message), sample=sample)

    async def _sample(self, actor: ExperimentActor, trial_id: str, value: value_pb2.Value) -> bytes:
        """Return the encoded sample for the algorithm of a user's own parameters; else empty.

        The algorithm learns only from what it has suggested, and from imported samples.
        """
        trial = actor.experiment.trials.get(trial_id)
        if trial is None or trial.source is not ParameterSource.CUSTOMIZED:
            return b""
        parameters = await self._large_values.load(value_pb2.Value.FromString(trial.parameters))
        samples = value_pb2.Value()
        entries = samples.list_value.items.add().map_value.entries
        entries.add(key="parameter", value=parameters)
        entries.add(key="value", value=value)
        # Parameters and value are nested deeper in it.
        await off_loop(samples.ByteSize(), check_storable, samples, "value")
        stored = await self._large_values.put(samples)
        return stored.SerializeToString(deterministic=True)

    async def renew(
        self, experiment_id: str, caller_id: str, claims: Sequence[Claim]
    ) -> RenewedLeases:
        """Renew the leases of a caller; return ids of trials that it does not hold, and the lease.

        Raises:
            InvalidArgumentError: there are too many trials.
        """
        if len(claims) > _RENEWED_LIMIT:
            raise InvalidArgumentError("trials", f"must be at most {_RENEWED_LIMIT}", len(claims))
        actor = await self._registry.find(experiment_id)
        lost = actor.renew_leases(caller_id, claims)
        return RenewedLeases(lost, actor.experiment.settings.lease_ms)


def _check_id(field: str, text: str) -> None:
    if not 1 <= len(text) <= _ID_LIMIT or not text.isprintable():
        raise InvalidArgumentError(
            field, f"must be 1 to {_ID_LIMIT} printable characters", text[:_ID_LIMIT]
        )

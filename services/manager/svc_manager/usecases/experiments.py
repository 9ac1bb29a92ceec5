"""Use cases on experiments, called by the gRPC servicer and the web API.

Responses are messages of `nni_proto`, the read model of both APIs, with secrets masked. Every
method may raise `svc_common.errors.ServiceError`s; the docstrings name the special ones. A changing
call repeated with the same ``request_id`` has no further effect and gets the same response; an
empty ``request_id`` marks a call that is never repeated.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from nni_proto.common.v1 import remarks_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as service_pb2
from nni_wire.values import blob_of
from svc_common import subjects
from svc_common.errors import InvalidArgumentError, ServiceError
from svc_common.experiment_events.causes import ExperimentCause
from svc_common.large_work import copy_of, off_loop
from svc_common.logs import get_logger
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.actors.registry import ActorRegistry
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.views import exported_view, write_remarks
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.inputs import (
    ChangeAgentLimits,
    ChangeRemarks,
    ImportData,
    RecordedCommand,
    Stop,
    Update,
)
from svc_manager.domain.remarks import Remarks
from svc_manager.domain.trial import Trial
from svc_manager.pagination import Page, Place, page_after
from svc_manager.pagination import page_size as sized
from svc_manager.ports import AlgorithmChecker
from svc_manager.usecases.activation import (
    ActivatedExperiment,
    Activations,
    NewExperiment,
    ReopenRequest,
)
from svc_manager.usecases.analyses import ConstraintChecker
from svc_manager.usecases.cluster_listing import ClusterListing
from svc_manager.usecases.deletions import Deletions
from svc_manager.usecases.log_streams import LogStreams, follow_events
from svc_manager.usecases.metric_cache import MetricCache
from svc_manager.usecases.request_checks import check_storable
from svc_manager.usecases.reruns import Reruns
from svc_manager.usecases.tuner_changes import TunerChanges

_STOP_FINGERPRINT: Final = "d91ec36c52358231"
"""Fingerprint of every request to stop, as in the logs of all versions."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Change of an experiment's budgets, space, tuner or agents; a field that is None stays."""

    trial_concurrency: int | None = None
    max_trial_number: int | None = None
    max_experiment_duration_s: float | None = None
    search_space: value_pb2.Value | None = None
    tuner: config_pb2.AlgorithmConfig | None = None
    """Tuner that takes over; excludes the other changes."""
    agent_limits: AgentLimits | None = None
    """Limits of its agents; excludes the other changes."""


_STOPPED: Final = experiment_pb2.EXPERIMENT_STATE_STOPPED
_ANY_INDEX: Final = 2**31 - 1
"""Index behind every event of a batch."""

__all__ = ["ActivatedExperiment", "ConfigChange", "Experiments", "NewExperiment", "ReopenRequest"]


Finished: TypeAlias = list[tuple[Place, Trial]]
"""Trials with a final result, in the order of their creation, with their sort keys."""


class Experiments:
    """Use cases on experiments for gRPC and REST: create, stop, list, update, export, follow.

    Args:
        registry: registry of the actors.
        activations: creates and reopens experiments.
        large_values: store of large values.
        checker: validates algorithms.
        metrics: metrics.
        log_streams: logs.
        deletions: deletes experiments.
        listing: listing of all managers' experiments.
        reruns: requests that create an experiment again.
        constraints: checks imported configurations; None: not checked.
    """

    def __init__(  # noqa: PLR0913 - all use cases behind one API
        self,
        registry: ActorRegistry,
        activations: Activations,
        large_values: LargeValues,
        checker: AlgorithmChecker,
        metrics: MetricCache,
        log_streams: LogStreams,
        deletions: Deletions,
        listing: ClusterListing,
        reruns: Reruns,
        constraints: ConstraintChecker | None = None,
    ) -> None:
        self._constraints = constraints
        self._registry = registry
        self._activations = activations
        self._large_values = large_values
        self._checker = checker
        self._metrics = metrics
        self._log_streams = log_streams
        self._deletions = deletions
        self._listing = listing
        self._reruns = reruns
        self._tuner_changes = TunerChanges(checker, large_values)
        self._finished: tuple[tuple[str, int], Finished] | None = None

    async def create(self, new: NewExperiment) -> ActivatedExperiment:
        """Validate a configuration and start a new experiment; remove all of it if it is refused.

        Raises:
            InvalidArgumentError: the configuration breaks a rule.
            PortTakenError: the port is in use.
        """
        return await self._activations.create(new)

    async def run_again(
        self, experiment_id: str, request_id: str = "", *, new_seed: bool = False
    ) -> ActivatedExperiment:
        """Create and start a copy of an experiment, without trials; `new_seed`: another seed.

        Raises:
            FailedPreconditionError: its environment or a secret value is not here any more.
        """
        old = await self._registry.find(experiment_id)
        new = await self._reruns.request(old.experiment, request_id, new_seed=new_seed)
        return await self._activations.create(new)

    async def resume(self, reopening: ReopenRequest) -> ActivatedExperiment:
        """Resume a stopped experiment; its trials are kept and imported into a new algorithm.

        Raises:
            FailedPreconditionError: it is running.
        """
        return await self._activations.resume(reopening)

    async def view(self, reopening: ReopenRequest) -> ActivatedExperiment:
        """Open a stopped experiment for reading, given folder imported if unknown; return it.

        Raises:
            FailedPreconditionError: it is running.
        """
        return await self._activations.view(reopening)

    async def stop(
        self,
        experiment_id: str,
        request_id: str = "",
        *,
        cause: ExperimentCause = ExperimentCause.STOPPED_BY_USER,
    ) -> experiment_pb2.Experiment:
        """Stop an experiment: cancel its trials, wait until it is STOPPED; return its last view."""
        actor = await self._registry.find(experiment_id)
        repeated = bool(request_id) and request_id in actor.experiment.requests
        stop = RecordedCommand(
            Stop(cause), request_id, "StopExperiment", fingerprint=_STOP_FINGERPRINT
        )
        await actor.submit(stop)
        if repeated and actor.experiment.state is not ExperimentState.STOPPING:
            return actor.view()  # that stop is done, and the experiment may have been resumed since
        await actor.wait_for_state({ExperimentState.STOPPED})
        return actor.view()

    async def get(self, experiment_id: str) -> ActivatedExperiment:
        """Return an experiment, a large search space loaded, and the addresses of its page."""
        view = await self._loaded(await self._registry.view(experiment_id))
        return ActivatedExperiment(view, self._activations.urls(view))

    async def list(
        self,
        *,
        include_stopped: bool = False,
        id_prefix: str = "",
        page_size: int = 0,
        page_token: str = "",
        owned_only: bool = False,
    ) -> Page[experiment_pb2.Experiment]:
        """Return a page of all managers' experiments, newest first, with or without stopped ones.

        Args:
            include_stopped: include stopped ones.
            id_prefix: prefix of the ids.
            page_size: 0: 100; at most 1,000.
            page_token: empty: the first page.
            owned_only: only experiments with an actor here, stopped ones included.
        """
        found = self._registry.owned_views() if owned_only else await self._listing.views()
        views = [
            view
            for view in found
            if (owned_only or include_stopped or view.state != _STOPPED)
            and view.id.startswith(id_prefix)
        ]
        views.sort(key=_age, reverse=True)
        size = sized(page_size, default=100, limit=1000)
        rest = [view for view in views if not page_token or _age(view) < _age_of(page_token)]
        token = "-".join(map(str, _age(rest[size - 1]))) if len(rest) > size else ""
        return Page(rest[:size], token, len(views))

    async def start_job_services(self) -> None:
        """Request the services that host open jobs to start; only log one that is not reached."""
        for actor in self._registry.actors():
            if actor.experiment.created and actor.experiment.state not in CLOSED_STATES:
                try:
                    await self._activations.start_job_service(actor)
                except ServiceError as error:
                    get_logger().warning(
                        "service of jobs not reached", experiment=actor.id, error=error.message
                    )

    async def delete(self, experiment_id: str, request_id: str = "") -> int:
        """Delete a stopped experiment; return about how many trial folders are deleted later.

        Raises:
            FailedPreconditionError: it is not STOPPED.
        """
        return await self._deletions.delete(experiment_id, request_id)

    async def update(
        self, experiment_id: str, change: ConfigChange, request_id: str = ""
    ) -> experiment_pb2.Experiment:
        """Check and apply a change of budgets, space, tuner or agents; return the experiment.

        Raises:
            InvalidArgumentError: a value breaks its rule; nothing was changed.
            FailedPreconditionError: it is stopped, or open for reading only.
        """
        actor = await self._registry.find(experiment_id)
        _check_change(actor, change)
        if change.tuner is not None:
            await self._tuner_changes.change(actor, change.tuner, request_id)
            return await self._loaded(actor.view())
        if change.agent_limits is not None:
            limits = ChangeAgentLimits(change.agent_limits)
            await actor.submit(RecordedCommand(limits, request_id, "UpdateExperiment"))
            return await self._loaded(actor.view())
        space = change.search_space
        if space is not None:
            await off_loop(space.ByteSize(), check_storable, space, "search_space")
            config = actor.view().config
            await asyncio.sleep(0)  # one large copy at a time
            config.search_space.CopyFrom(space)
            await self._checker.check(config, actor.experiment.interpreter, replaces_space=True)
            space = await self._large_values.put(space)
        duration_s = change.max_experiment_duration_s
        update = Update(
            change.trial_concurrency,
            change.max_trial_number,
            None if duration_s is None else round(duration_s * 1000),
            None if space is None else space.SerializeToString(deterministic=True),
        )
        await actor.submit(RecordedCommand(update, request_id, "UpdateExperiment"))
        return await self._loaded(actor.view())

    async def change_remarks(
        self, experiment_id: str, change: ChangeRemarks, request_id: str = ""
    ) -> remarks_pb2.Remarks:
        """Set note, star or the whole tag list of experiment or trial; return all its remarks.

        Raises:
            InvalidArgumentError: a value breaks its rule; nothing was changed.
            NotFoundError: the experiment has no such trial.
            FailedPreconditionError: it is open for reading only.
        """
        actor = await self._registry.find(experiment_id)
        await actor.submit(RecordedCommand(change, request_id, "ChangeRemarks"))
        found = remarks_pb2.Remarks()
        write_remarks(found, actor.experiment.remarks.get(change.trial_id, Remarks()))
        return found

    async def import_data(
        self, experiment_id: str, data: value_pb2.Value, request_id: str = ""
    ) -> Sequence[str]:
        """Store samples, submit them to the experiment's algorithm; return constraint warnings."""
        await off_loop(data.ByteSize(), check_storable, data, "data")
        actor = await self._registry.find(experiment_id)
        stored = await self._large_values.put(data)
        import_id = request_id or uuid.uuid4().hex
        command = ImportData(import_id, stored.SerializeToString(deterministic=True))
        await actor.submit(RecordedCommand(command, request_id, "ImportData"))
        return [] if self._constraints is None else await self._constraints.warnings(actor, data)

    async def export(
        self,
        experiment_id: str,
        *,
        include_intermediates: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[service_pb2.ExportedTrial]:
        """Return a page of trials with a final result, oldest first; intermediates on request."""
        actor = await self._registry.find(experiment_id)
        book = await self._metrics.read(actor) if include_intermediates else None
        finished = self._finished_trials(actor)
        size = sized(page_size, default=1000, limit=10_000)
        page = page_after(finished, page_token, size)
        exported = [
            exported_view(
                trial, [row for _, row in book.by_trial.get(trial.id, [])] if book else []
            )
            for trial in page.items
        ]
        for item in exported:
            await self._load_into(item.parameters)
        return Page(exported, page.next_token, page.total)

    def _finished_trials(self, actor: ExperimentActor) -> Finished:
        """Return (sort key, trial) of ended trials with a result; cached until the log grows."""
        key = (actor.id, actor.sequence)
        if self._finished is None or self._finished[0] != key:
            rows = [
                ((False, float(trial.sequence_id), trial.sequence_id), trial)
                for trial in actor.experiment.trials.values()
                if trial.final is not None and not trial.live
            ]
            self._finished = (key, rows)
        return self._finished[1]

    async def follow_events(
        self,
        experiment_id: str,
        after: event_pb2.EventPosition | None = None,
        *,
        follow: bool = True,
    ) -> AsyncGenerator[service_pb2.FollowEventsResponse, None]:
        """Yield an experiment's events after a position; with ``follow`` also new ones.

        A negative sequence in ``after`` stands for the current end of the log. The caller closes
        the generator (`contextlib.aclosing`).
        """
        if after is not None and after.sequence < 0:
            actor = await self._registry.find(experiment_id)
            after = event_pb2.EventPosition(sequence=actor.sequence, index=_ANY_INDEX)
        await self._registry.view(experiment_id)
        feed = follow_events(self._activations.events, experiment_id, after, follow=follow)
        async with aclosing(feed):
            async for item in feed:
                yield item

    async def follow_logs(
        self,
        experiment_id: str,
        source: service_pb2.LogSource.ValueType,
        *,
        trial_id: str = "",
        offset: int = 0,
        attempt: int = 0,
        follow: bool = False,
    ) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        """Yield an experiment's, dispatcher's or trial's log from byte ``offset`` on.

        An offset of an earlier ``attempt`` (0: of the present one) counts as 0.

        Raises:
            NotFoundError: the trial is unknown, or nothing was written yet (without ``follow``).
        """
        actor = await self._registry.find(experiment_id)
        feed = self._log_streams.follow(
            actor, source, trial_id, offset, attempt=attempt, follow=follow
        )
        async with aclosing(feed):
            async for item in feed:
                yield item

    async def log_size(
        self,
        experiment_id: str,
        source: service_pb2.LogSource.ValueType,
        *,
        trial_id: str = "",
    ) -> int:
        """Return the current length of an experiment's, dispatcher's or trial's log in bytes.

        Raises:
            NotFoundError: the trial is unknown, or nothing was written yet.
        """
        actor = await self._registry.find(experiment_id)
        return await self._log_streams.size(actor, source, trial_id)

    async def fetch_output(self, experiment_id: str, trial_id: str) -> None:
        """Download an ended trial's stored output into its folder here, unless that exists."""
        await self._log_streams.fetch(await self._registry.find(experiment_id), trial_id)

    async def wait(
        self, experiment_id: str, states: Collection[experiment_pb2.ExperimentState.ValueType]
    ) -> experiment_pb2.Experiment:
        """Wait until an experiment is, or since the call was, in one of ``states``; return it."""
        if not states:
            raise InvalidArgumentError("states", "must name at least one state")
        wanted = {_known_state(state) for state in states}
        actor = await self._registry.find(experiment_id)
        await actor.wait_for_state(wanted)
        return actor.view()

    async def _loaded(self, view: experiment_pb2.Experiment) -> experiment_pb2.Experiment:
        if blob_of(view.config.search_space) is None:
            return view
        full = await copy_of(view)
        await self._load_into(full.config.search_space)
        return full

    async def _load_into(self, value: value_pb2.Value) -> None:
        if blob_of(value) is not None:
            loaded = await self._large_values.load(value)
            await asyncio.sleep(0)  # a large copy takes up to 40 ms
            value.CopyFrom(loaded)
            await asyncio.sleep(0)


def _check_change(actor: ExperimentActor, change: ConfigChange) -> None:
    """Raise if a change must come alone, or a compression job's description decides."""
    for name in ("tuner", "agent_limits"):
        value = getattr(change, name)
        if value is not None and replace(change, **{name: None}) != ConfigChange():
            raise InvalidArgumentError(
                name, "must be changed alone", None, "send the other changes in another request"
            )
    if actor.experiment.settings.algorithm_service != subjects.COMPRESSOR:
        return
    for name in ("trial_concurrency", "max_trial_number", "search_space"):
        if getattr(change, name) is not None:
            raise InvalidArgumentError(name, "cannot be changed for a compression job")


def _known_state(state: experiment_pb2.ExperimentState.ValueType) -> ExperimentState:
    try:
        return ExperimentState(state)
    except ValueError:
        known = ", ".join(f"{item.name} ({item.value})" for item in ExperimentState)
        raise InvalidArgumentError("states", f"must be some of {known}", int(state)) from None


def _age(view: experiment_pb2.Experiment) -> tuple[int, str]:
    """Return (creation in ms, id), the sort key of lists, from which page tokens are made."""
    return view.created_at.ToMilliseconds(), view.id


def _age_of(token: str) -> tuple[int, str]:
    created_ms, _, experiment_id = token.partition("-")
    if not (created_ms.isascii() and created_ms.isdigit()):
        raise InvalidArgumentError(
            "page_token", "must be one that an earlier page gave", token[:40]
        )
    return int(created_ms), experiment_id

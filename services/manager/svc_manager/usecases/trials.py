"""Use cases on trials, called by the gRPC servicer and the web API.

The contract of `svc_manager.usecases.experiments` holds here, too.
"""

import asyncio
import math
import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias, overload

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.pools import LOCAL_PLATFORM, LOCAL_POOL
from nni_wire.values import blob_of
from svc_common.clock import Clock
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.large_work import off_loop
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.actors.registry import ActorRegistry
from svc_manager.agents.liveness import AgentMonitor
from svc_manager.agents.pool_states import PoolStates
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.explanations import explanation_view
from svc_manager.converters.views import counts_view, trial_view, write_remarks
from svc_manager.domain.explain import explain_next, explain_trial
from svc_manager.domain.explanation import ExplanationContext
from svc_manager.domain.inputs import AddTrial, KillTrial, RecordedCommand
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial
from svc_manager.pagination import Page, Place, number_of, page_after, page_behind, token_moment
from svc_manager.pagination import page_size as sized
from svc_manager.usecases.analyses import ConstraintChecker
from svc_manager.usecases.metric_cache import MetricCache
from svc_manager.usecases.request_checks import check_storable

_BY_SEQUENCE: Final = frozenset(
    {trial_service_pb2.TRIAL_ORDER_UNSPECIFIED, trial_service_pb2.TRIAL_ORDER_SEQUENCE}
)

RANKING_S: Final = 2.0
"""Time for which the order of a list is kept for its next pages."""
_RANKINGS_LIMIT: Final = 8
_RANKED_ON_THE_LOOP: Final = 2_000
"""Most trials that are ranked without a thread: about 5 ms."""
_VIEWS_AT_ONCE: Final = 250
"""Trials to convert before yielding to other tasks of the manager: about 5 ms."""


@dataclass(frozen=True, slots=True)
class TrialFilter:
    """Filter of a list of trials by state, id prefix and result, and the order of the list."""

    states: Collection[trial_pb2.TrialState.ValueType] = ()
    """Empty: all."""
    id_prefix: str = ""
    with_result: bool = False
    """Only trials that have a final result."""
    order: trial_service_pb2.TrialOrder.ValueType = trial_service_pb2.TRIAL_ORDER_SEQUENCE
    descending: bool = False

    @property
    def is_all_by_sequence(self) -> bool:
        """Return whether the filter passes all trials, in order of creation."""
        return not (
            self.states
            or self.id_prefix
            or self.with_result
            or self.descending
            or self.order not in _BY_SEQUENCE
        )


_Rows: TypeAlias = list[tuple[Place, Trial]]
_RankingKey: TypeAlias = tuple[
    str,
    tuple[trial_pb2.TrialState.ValueType, ...],
    str,
    bool,
    trial_service_pb2.TrialOrder.ValueType,
    bool,
    int,
]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Sorted trials of a list, kept for a while so that its next pages need no new sort."""

    rows: list[tuple[Place, Trial]]
    valid_until_s: float
    """Monotonic time from which a page ranks anew, so that later trials are found."""


class SequenceIndex:
    """Cache of the trial ids in order of creation, of the last listed experiments."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, tuple[Experiment, list[str]]] = OrderedDict()

    def ids(self, experiment_id: str, experiment: Experiment) -> list[str]:
        """Return an experiment's trial ids by creation; extend the cached list by new trials."""
        known, ids = self._ids.pop(experiment_id, (experiment, []))
        if known is not experiment:
            ids = []
        if len(ids) != len(experiment.trials):
            ids.extend(islice(experiment.trials, len(ids), None))
        self._ids[experiment_id] = (experiment, ids)
        while len(self._ids) > _RANKINGS_LIMIT:
            self._ids.popitem(last=False)
        return ids


class Trials:
    """Use cases on trials: list, get, kill, add, metrics, counts and explanation.

    Args:
        registry: registry of the actors.
        large_values: store of large values.
        metric_cache: metrics.
        agents: monitor of the agents, for explanations.
        clock: source of time, for explanations.
        pools: states of pools, for explanations.
        constraints: checks users' configurations; None: not checked.
    """

    def __init__(
        self,
        registry: ActorRegistry,
        large_values: LargeValues,
        metric_cache: MetricCache,
        agents: AgentMonitor,
        clock: Clock,
        pools: PoolStates,
        constraints: ConstraintChecker | None = None,
    ) -> None:
        self._pools = pools
        self._constraints = constraints
        self._registry = registry
        self._large_values = large_values
        self._metric_cache = metric_cache
        self._agents = agents
        self._clock = clock
        self._sequence = SequenceIndex()
        self._rankings: OrderedDict[_RankingKey, _Ranking] = OrderedDict()

    async def list(
        self,
        experiment_id: str,
        trial_filter: TrialFilter | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[trial_pb2.Trial]:
        """Return a page of an experiment's trials, filtered and sorted; 100 if no size is given."""
        actor = await self._registry.find(experiment_id)
        experiment = actor.experiment
        moment_ms = token_moment(page_token, actor.now_ms())
        wanted = trial_filter or TrialFilter()
        size = sized(page_size, default=100, limit=10_000)
        if wanted.is_all_by_sequence:
            ids = self._sequence.ids(experiment_id, experiment)
            page = page_by_sequence(experiment, ids, page_token, size, moment_ms)
        else:
            ranked = await self._ranked(experiment_id, experiment, wanted, moment_ms)
            page = page_after(ranked, page_token, size, moment_ms)
        views: list[trial_pb2.Trial] = []
        for start in range(0, len(page.items), _VIEWS_AT_ONCE):
            chunk = page.items[start : start + _VIEWS_AT_ONCE]
            views += [self._view(experiment, trial) for trial in chunk]
            await asyncio.sleep(0)  # other tasks of the manager come first
        for view in views:
            await self._load(view)
        return Page(views, page.next_token, page.total)

    async def get(self, experiment_id: str, trial_id: str) -> trial_pb2.Trial:
        """Return one trial's proto message, with large parameters loaded; raise if unknown.

        Raises:
            NotFoundError: the experiment has no such trial.
        """
        actor = await self._registry.find(experiment_id)
        trial = actor.experiment.trials.get(trial_id)
        if trial is None:
            raise NotFoundError("trial", trial_id)
        return await self._load(self._view(actor.experiment, trial))

    async def kill(
        self, experiment_id: str, trial_id: str, request_id: str = ""
    ) -> trial_pb2.Trial:
        """Request the stop of a live trial as USER_CANCELED; return its proto message.

        Raises:
            NotFoundError: the experiment has no such trial.
            FailedPreconditionError: the trial has ended.
        """
        actor = await self._registry.find(experiment_id)
        await actor.submit(RecordedCommand(KillTrial(trial_id), request_id, "KillTrial"))
        return self._view(actor.experiment, actor.experiment.trials[trial_id])

    async def add(
        self, experiment_id: str, parameters: value_pb2.Value, request_id: str = ""
    ) -> int:
        """Check a user's parameters and queue a trial with them; return its parameter id.

        Raises:
            FailedPreconditionError: the experiment accepts no more trials.
            InvalidArgumentError: the parameters break a constraint of the search space.
        """
        if parameters.WhichOneof("kind") is None:
            raise InvalidArgumentError("parameters", "must be given")
        await off_loop(parameters.ByteSize(), check_storable, parameters, "parameters")
        actor = await self._registry.find(experiment_id)
        if self._constraints is not None:
            await self._constraints.check(actor, parameters)
        key = request_id or uuid.uuid4().hex
        stored = await self._large_values.put(parameters)
        command = AddTrial(key, stored.SerializeToString(deterministic=True))
        await actor.submit(RecordedCommand(command, request_id, "AddTrial"))
        return actor.experiment.custom_ids[key]

    async def metrics(
        self,
        experiment_id: str,
        trial_id: str = "",
        type_: metric_pb2.MetricType.ValueType = metric_pb2.METRIC_TYPE_UNSPECIFIED,
        *,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[trial_service_pb2.TrialMetric]:
        """Return a page of the metrics of one or all trials, by type; 1,000 if no size is given."""
        actor = await self._registry.find(experiment_id)
        if trial_id and trial_id not in actor.experiment.trials:
            raise NotFoundError("trial", trial_id)
        metrics = await self._metric_cache.read(actor)
        if trial_id:
            rows = metrics.by_trial.get(trial_id, [])
            if type_ != metric_pb2.METRIC_TYPE_UNSPECIFIED:
                rows = [(number, row) for number, row in rows if row.metric.type == type_]
        elif type_ == metric_pb2.METRIC_TYPE_UNSPECIFIED:
            rows = metrics.rows
        else:
            rows = metrics.by_type.get(type_, [])
        size = sized(page_size, default=1000, limit=100_000)
        page = page_behind(rows, itemgetter(0), page_token, size, number_of)
        return Page([row for _, row in page.items], page.next_token, page.total)

    async def intermediate_ranges(
        self, experiment_id: str
    ) -> Mapping[str, Mapping[str, tuple[float, float]]]:
        """Return {trial id: {metric: (smallest, largest finite intermediate number)}}."""
        actor = await self._registry.find(experiment_id)
        return dict((await self._metric_cache.read(actor)).ranges)

    async def counts(self, experiment_id: str) -> Mapping[str, int]:
        """Return the number of trials by state name, without empty states."""
        return counts_view((await self._registry.find(experiment_id)).experiment)

    async def explain(
        self, experiment_id: str, trial_id: str = ""
    ) -> trial_service_pb2.ExplainTrialResponse:
        """Return why a trial is in its state; without an id, why the next one is not created.

        Raises:
            NotFoundError: the experiment has no such trial.
        """
        actor = await self._registry.find(experiment_id)
        experiment = actor.experiment
        if not trial_id:
            context = self._context(actor, None)
            return explanation_view(explain_next(experiment, context))
        trial = experiment.trials.get(trial_id)
        if trial is None:
            raise NotFoundError("trial", trial_id)
        context = self._context(actor, trial)
        return explanation_view(explain_trial(experiment, trial, context))

    async def _ranked(
        self, experiment_id: str, experiment: Experiment, wanted: TrialFilter, moment_ms: int
    ) -> _Rows:
        """Return the filtered (sort key, trial) rows of a list in order, cached for further pages.

        It is made once for all pages that are read soon after each other; the time names the list.
        """
        key = (
            experiment_id,
            tuple(wanted.states),
            wanted.id_prefix,
            wanted.with_result,
            wanted.order,
            wanted.descending,
            moment_ms,
        )
        now_s = self._clock.monotonic_s()
        made = self._rankings.pop(key, None)
        if made is None or now_s > made.valid_until_s:
            if len(experiment.trials) > _RANKED_ON_THE_LOOP:
                rows = await asyncio.to_thread(rank, experiment, wanted, moment_ms)
            else:
                rows = rank(experiment, wanted, moment_ms)
            made = _Ranking(rows, now_s + RANKING_S)
        self._rankings[key] = made
        while len(self._rankings) > _RANKINGS_LIMIT:
            self._rankings.popitem(last=False)
        return made.rows

    def _context(self, actor: ExperimentActor, trial: Trial | None) -> ExplanationContext:
        return ExplanationContext(
            now_ms=actor.now_ms(),
            agents=self._agents.facts(actor.id, trial),
            bus_trouble=actor.bus_trouble,
            pool=self._pools.facts(actor.experiment.settings.pool),
        )

    def _view(self, experiment: Experiment, trial: Trial) -> trial_pb2.Trial:
        view = self._plain_view(experiment, trial)
        if trial.id in experiment.remarks:
            write_remarks(view.remarks, experiment.remarks[trial.id])
        return view

    def _plain_view(self, experiment: Experiment, trial: Trial) -> trial_pb2.Trial:
        if trial.pool == LOCAL_POOL:
            return trial_view(trial, experiment.directory, LOCAL_PLATFORM)
        platforms = experiment.settings.platforms
        only = platforms[0] if len(platforms) == 1 else ""
        platform = self._pools.platform(trial.runner_id) or only
        return trial_view(trial, experiment.directory, platform, self._pools.wait(trial.pool))

    async def _load(self, view: trial_pb2.Trial) -> trial_pb2.Trial:
        if blob_of(view.parameters) is not None:
            view.parameters.CopyFrom(await self._large_values.load(view.parameters))
        return view


def page_by_sequence(
    experiment: Experiment, ids: Sequence[str], token: str, size: int, moment_ms: int
) -> Page[Trial]:
    """Return a page of all trials by creation, from ``ids``, without sorting the trials.

    Args:
        experiment: the experiment.
        ids: of its trials, in that order.
        token: of the page before, see `page_after`; empty: the first page.
        size: maximum items of the page.
        moment_ms: see `token_moment`.

    Raises:
        InvalidArgumentError: the token is invalid.
    """
    return page_after(_RowsBySequence(experiment.trials, ids), token, size, moment_ms)


class _RowsBySequence(Sequence[tuple[Place, Trial]]):
    """Sequence that makes a trial's (sort key, trial) row when the row is read."""

    def __init__(self, trials: Mapping[str, Trial], ids: Sequence[str]) -> None:
        self._trials = trials
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> tuple[Place, Trial]: ...

    @overload
    def __getitem__(self, index: slice) -> list[tuple[Place, Trial]]: ...

    def __getitem__(self, index: int | slice) -> tuple[Place, Trial] | list[tuple[Place, Trial]]:
        if isinstance(index, slice):
            return [self._row(trial_id) for trial_id in self._ids[index]]
        return self._row(self._ids[index])

    def _row(self, trial_id: str) -> tuple[Place, Trial]:
        trial = self._trials[trial_id]
        return (False, trial.sequence_id, trial.sequence_id), trial


def rank(experiment: Experiment, wanted: TrialFilter, moment_ms: int) -> list[tuple[Place, Trial]]:
    """Filter trials and return (sort key, trial) rows in the wanted order; no value sorts last.

    Trials without the value of the sort key come last, in both directions.

    Args:
        experiment: the experiment.
        wanted: filter and order.
        moment_ms: end of the durations of running trials, ms since 1970.
    """
    found = _matching(experiment, wanted)
    found.sort(key=attrgetter("sequence_id"))  # linear: they are nearly in this order
    value_of = _value_of(experiment, wanted.order, moment_ms)
    sign = -1 if wanted.descending else 1
    rows: list[tuple[Place, Trial]] = []
    without: list[tuple[Place, Trial]] = []
    for trial in found:
        value = value_of(trial)
        if value is None:
            without.append(((True, 0.0, trial.sequence_id), trial))
        else:
            rows.append(((False, sign * value, trial.sequence_id), trial))
    rows.sort(key=lambda row: row[0][1])  # stable: equal values stay in order of creation
    return rows + without


def _matching(experiment: Experiment, wanted: TrialFilter) -> list[Trial]:
    """Return the trials that the filter passes, in no order."""
    found = list(experiment.trials.values())  # a copy: the fold may add some meanwhile
    if wanted.states:
        states = frozenset(wanted.states)
        found = [trial for trial in found if trial.state.value in states]
    if wanted.id_prefix:
        found = [trial for trial in found if trial.id.startswith(wanted.id_prefix)]
    if wanted.with_result:
        found = [trial for trial in found if trial.final is not None]
    return found


def _value_of(
    experiment: Experiment,
    order: trial_service_pb2.TrialOrder.ValueType,
    moment_ms: int,
) -> Callable[[Trial], float | None]:
    """Return the function that computes the sort value of a trial; None: the trial has none."""
    objective = experiment.settings.objective

    def metric(trial: Trial) -> float | None:
        value = trial.final.number(objective) if trial.final else None
        return None if value is None or math.isnan(value) else value

    def duration_ms(trial: Trial) -> float | None:
        if not trial.started_at_ms:
            return None
        return (trial.ended_at_ms or moment_ms) - trial.started_at_ms

    match order:
        case trial_service_pb2.TRIAL_ORDER_METRIC:
            return metric
        case trial_service_pb2.TRIAL_ORDER_STATE:
            return lambda trial: trial.state.value
        case trial_service_pb2.TRIAL_ORDER_START_TIME:
            return lambda trial: trial.started_at_ms or None
        case trial_service_pb2.TRIAL_ORDER_UNSPECIFIED | trial_service_pb2.TRIAL_ORDER_SEQUENCE:
            return lambda trial: trial.sequence_id
        case _:
            return duration_ms

"""In-memory use cases for tests of the web handlers without a manager."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from nni_proto.common.v1 import metric_pb2, remarks_pb2, value_pb2
from nni_proto.experiment.v1 import event_pb2, experiment_pb2, experiment_service_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from nni_wire.values import from_value, to_value
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ServiceError,
)
from svc_manager.converters.agent_limits import apply_limits
from svc_manager.converters.views import write_remarks
from svc_manager.domain.inputs import ChangeRemarks
from svc_manager.domain.remarks import Remarks
from svc_manager.pagination import Page, number_of, page_behind, page_size
from svc_manager.usecases.analyses import Front, Importance
from svc_manager.usecases.experiments import (
    ActivatedExperiment,
    ConfigChange,
    NewExperiment,
    ReopenRequest,
)
from svc_manager.usecases.trials import TrialFilter

LIVE = {trial_pb2.TRIAL_STATE_WAITING, trial_pb2.TRIAL_STATE_RUNNING}
LOG_NAMES = {
    experiment_service_pb2.LOG_SOURCE_MANAGER: "log/nnimanager.log",
    experiment_service_pb2.LOG_SOURCE_DISPATCHER: "log/dispatcher.log",
    experiment_service_pb2.LOG_SOURCE_TRIAL_LOG: "trial.log",
    experiment_service_pb2.LOG_SOURCE_TRIAL_STDOUT: "stdout",
    experiment_service_pb2.LOG_SOURCE_TRIAL_STDERR: "stderr",
    experiment_service_pb2.LOG_SOURCE_TRIAL_RESOURCES: ".nni/resources.jsonl",
}


Item = TypeVar("Item")


def _cut(items: list[Item], token: str, size: int) -> Page[Item]:
    """Return a page of a list that does not change."""
    numbered = list(enumerate(items))
    page = page_behind(numbered, itemgetter(0), token, size, number_of)
    return Page([item for _, item in page.items], page.next_token, page.total)


class InMemoryManager:
    """State of a manager: experiments, trials and events of a test."""

    def __init__(self) -> None:
        self.experiments: dict[str, experiment_pb2.Experiment] = {}
        self.trials: dict[str, dict[str, trial_pb2.Trial]] = {}
        self.metrics: dict[str, list[trial_service_pb2.TrialMetric]] = {}
        self.events: dict[str, list[experiment_service_pb2.FollowEventsResponse]] = {}
        self.imported: list[object] = []
        self.created: list[NewExperiment] = []
        self.request_ids: list[str] = []
        self.broken_logs: ServiceError | None = None
        """Error at which every log ends; None: logs are complete."""
        self.logs_begin = 0
        """Offset of the first byte that logs still have."""
        self.attempt = 1
        """Attempt that has written the logs of trials."""
        self.appended = asyncio.Event()

    def put(self, experiment: experiment_pb2.Experiment) -> None:
        self.experiments[experiment.id] = experiment
        self.trials.setdefault(experiment.id, {})

    def put_trial(self, experiment_id: str, trial: trial_pb2.Trial) -> None:
        self.trials[experiment_id][trial.id] = trial

    def append(self, experiment_id: str, event: event_pb2.Event) -> None:
        log = self.events.setdefault(experiment_id, [])
        position = event_pb2.EventPosition(sequence=10 + len(log), index=0)
        log.append(experiment_service_pb2.FollowEventsResponse(position=position, event=event))
        self.appended.set()
        self.appended = asyncio.Event()

    def experiment(self, experiment_id: str) -> experiment_pb2.Experiment:
        if experiment_id not in self.experiments:
            raise NotFoundError("experiment", experiment_id)
        return self.experiments[experiment_id]

    def changeable(self, experiment_id: str) -> experiment_pb2.Experiment:
        experiment = self.experiment(experiment_id)
        if experiment.state == experiment_pb2.EXPERIMENT_STATE_VIEWED:
            raise FailedPreconditionError("the experiment is open for reading only")
        return experiment


class InMemoryExperiments:
    """`ExperimentUseCases` over an `InMemoryManager`."""

    def __init__(self, manager: InMemoryManager) -> None:
        self._manager = manager

    async def create(self, new: NewExperiment) -> ActivatedExperiment:
        self._manager.created.append(new)
        experiment = experiment_pb2.Experiment(id="newone00", config=new.config, port=new.port)
        self._manager.put(experiment)
        return ActivatedExperiment(experiment, [f"http://127.0.0.1:{new.port}"])

    async def stop(self, experiment_id: str, request_id: str = "") -> experiment_pb2.Experiment:
        experiment = self._manager.experiment(experiment_id)
        self._manager.request_ids.append(request_id)
        experiment.state = experiment_pb2.EXPERIMENT_STATE_STOPPED
        return experiment

    async def resume(self, reopening: ReopenRequest) -> ActivatedExperiment:
        experiment = self._manager.experiment(reopening.experiment_id)
        self._manager.request_ids.append(reopening.request_id)
        if experiment.state != experiment_pb2.EXPERIMENT_STATE_STOPPED:
            raise FailedPreconditionError("the experiment is running")
        experiment.state = experiment_pb2.EXPERIMENT_STATE_RUNNING
        experiment.port = reopening.port
        return await self.get(experiment.id)

    async def delete(self, experiment_id: str, request_id: str = "") -> int:
        experiment = self._manager.experiment(experiment_id)
        self._manager.request_ids.append(request_id)
        if experiment.state != experiment_pb2.EXPERIMENT_STATE_STOPPED:
            raise FailedPreconditionError("only a stopped one can be deleted; stop it first")
        del self._manager.experiments[experiment_id]
        return 3

    async def run_again(
        self, experiment_id: str, request_id: str = "", *, new_seed: bool = False
    ) -> ActivatedExperiment:
        config = experiment_pb2.Experiment()
        config.CopyFrom(self._manager.experiment(experiment_id))
        if new_seed:
            config.config.ClearField("seed")
        return await self.create(NewExperiment(config.config, request_id))

    async def fetch_output(self, experiment_id: str, trial_id: str) -> None:
        """Return at once: all output is local."""

    async def get(self, experiment_id: str) -> ActivatedExperiment:
        experiment = self._manager.experiment(experiment_id)
        urls = [f"http://127.0.0.1:{experiment.port}"] if experiment.port else []
        return ActivatedExperiment(experiment, urls)

    async def list(
        self,
        *,
        include_stopped: bool = False,
        id_prefix: str = "",
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[experiment_pb2.Experiment]:
        stopped = experiment_pb2.EXPERIMENT_STATE_STOPPED
        found = [
            one
            for one in self._manager.experiments.values()
            if one.id.startswith(id_prefix) and (include_stopped or one.state != stopped)
        ]
        return Page(found)

    async def update(
        self, experiment_id: str, change: ConfigChange, request_id: str = ""
    ) -> experiment_pb2.Experiment:
        experiment = self._manager.changeable(experiment_id)
        self._manager.request_ids.append(request_id)
        if change.trial_concurrency is not None:
            experiment.config.trial_concurrency = change.trial_concurrency
        if change.max_trial_number is not None:
            experiment.config.max_trial_number = change.max_trial_number
        if change.max_experiment_duration_s is not None:
            duration = experiment.config.max_experiment_duration
            duration.FromMilliseconds(int(change.max_experiment_duration_s * 1000))
        if change.search_space is not None:
            experiment.config.search_space.CopyFrom(change.search_space)
        if change.tuner is not None:
            experiment.config.tuner.CopyFrom(change.tuner)
        if change.agent_limits is not None:
            apply_limits(experiment.config.training_services, change.agent_limits)
        experiment.revision += 1
        return experiment

    async def change_remarks(
        self, experiment_id: str, change: ChangeRemarks, request_id: str = ""
    ) -> remarks_pb2.Remarks:
        experiment = self._manager.changeable(experiment_id)
        self._manager.request_ids.append(request_id)
        trials = self._manager.trials[experiment_id]
        if change.trial_id and change.trial_id not in trials:
            raise NotFoundError("trial", change.trial_id)
        held = trials[change.trial_id].remarks if change.trial_id else experiment.remarks
        old = Remarks(held.note, tuple(held.tags), held.starred)
        new = old.changed(note=change.note, tags=change.tags, starred=change.starred)
        write_remarks(held, new)
        return held

    async def import_data(
        self,
        experiment_id: str,
        data: value_pb2.Value,
        request_id: str = "",
    ) -> Sequence[str]:
        self._manager.changeable(experiment_id)
        samples = from_value(data)
        if not isinstance(samples, list):
            raise InvalidArgumentError("data", "must be a list")
        self._manager.imported += samples
        return []

    async def export(
        self,
        experiment_id: str,
        *,
        include_intermediates: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[experiment_service_pb2.ExportedTrial]:
        self._manager.experiment(experiment_id)
        found = [
            experiment_service_pb2.ExportedTrial(
                trial_id=trial.id,
                parameters=trial.parameters,
                value=trial.final_metric.value,
                intermediates=[to_value(0.5)] if include_intermediates else [],
            )
            for trial in self._manager.trials[experiment_id].values()
            if trial.HasField("final_metric")
        ]
        return _cut(found, page_token, page_size or 1000)

    async def follow_events(
        self,
        experiment_id: str,
        after: event_pb2.EventPosition | None = None,
        *,
        follow: bool = True,
    ) -> AsyncGenerator[experiment_service_pb2.FollowEventsResponse, None]:
        log = self._manager.events.setdefault(experiment_id, [])
        seen = len(log) if after is not None and after.sequence == -1 else 0
        while True:
            appended = self._manager.appended
            for event in log[seen:]:
                seen += 1
                if after is None or event.position.sequence > after.sequence:
                    yield event
            if not follow:
                return
            await appended.wait()

    async def follow_logs(
        self,
        experiment_id: str,
        source: experiment_service_pb2.LogSource.ValueType,
        *,
        trial_id: str = "",
        offset: int = 0,
        attempt: int = 0,
        follow: bool = False,
    ) -> AsyncGenerator[experiment_service_pb2.FollowLogsResponse, None]:
        experiment = self._manager.experiment(experiment_id)
        trial = self._manager.trials[experiment_id].get(trial_id)
        path = Path(trial.directory if trial else experiment.directory) / LOG_NAMES[source]
        if not path.is_file():
            raise NotFoundError("log", path.name)
        present = self._manager.attempt if trial else 0
        offset = offset if attempt in {0, present} else 0
        offset = max(offset, self._manager.logs_begin)
        data = path.read_bytes()[offset:]
        yield experiment_service_pb2.FollowLogsResponse(data=data, offset=offset, attempt=present)
        if self._manager.broken_logs is not None:
            raise self._manager.broken_logs

    async def log_size(
        self,
        experiment_id: str,
        source: experiment_service_pb2.LogSource.ValueType,
        *,
        trial_id: str = "",
    ) -> int:
        pieces = self.follow_logs(experiment_id, source, trial_id=trial_id)
        return max([piece.offset + len(piece.data) async for piece in pieces])


class InMemoryTrials:
    """`TrialUseCases` over an `InMemoryManager`."""

    def __init__(self, manager: InMemoryManager) -> None:
        self._manager = manager

    def _all(self, experiment_id: str) -> dict[str, trial_pb2.Trial]:
        self._manager.experiment(experiment_id)
        return self._manager.trials[experiment_id]

    async def list(
        self,
        experiment_id: str,
        trial_filter: TrialFilter | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[trial_pb2.Trial]:
        chosen = trial_filter or TrialFilter()
        found = [
            trial
            for trial in self._all(experiment_id).values()
            if (not chosen.states or trial.state in chosen.states)
            and trial.id.startswith(chosen.id_prefix)
            and (not chosen.with_result or trial.HasField("final_metric"))
        ]
        found.sort(key=lambda trial: trial.sequence_id, reverse=chosen.descending)
        return _cut(found, page_token, _size(page_size))

    async def get(self, experiment_id: str, trial_id: str) -> trial_pb2.Trial:
        trials = self._all(experiment_id)
        if trial_id not in trials:
            raise NotFoundError("trial", trial_id)
        return trials[trial_id]

    async def kill(
        self, experiment_id: str, trial_id: str, request_id: str = ""
    ) -> trial_pb2.Trial:
        self._manager.changeable(experiment_id)
        self._manager.request_ids.append(request_id)
        trial = await self.get(experiment_id, trial_id)
        if trial.state not in LIVE:
            raise FailedPreconditionError(f"trial {trial_id} is over")
        trial.state = trial_pb2.TRIAL_STATE_USER_CANCELED
        return trial

    async def add(
        self,
        experiment_id: str,
        parameters: value_pb2.Value,
        request_id: str = "",
    ) -> int:
        self._manager.changeable(experiment_id)
        number = len(self._all(experiment_id))
        self._manager.put_trial(
            experiment_id,
            trial_pb2.Trial(
                id=f"cust{number}",
                state=trial_pb2.TRIAL_STATE_WAITING,
                sequence_id=number,
                parameter_id=number,
                parameters=parameters,
                source=trial_pb2.PARAMETER_SOURCE_CUSTOMIZED,
            ),
        )
        return number

    async def metrics(
        self,
        experiment_id: str,
        trial_id: str = "",
        type_: metric_pb2.MetricType.ValueType = metric_pb2.METRIC_TYPE_UNSPECIFIED,
        *,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[trial_service_pb2.TrialMetric]:
        self._all(experiment_id)
        found = [
            metric
            for metric in self._manager.metrics.get(experiment_id, [])
            if trial_id in {"", metric.trial_id} and type_ in {0, metric.metric.type}
        ]
        return _cut(found, page_token, page_size or 1000)

    async def intermediate_ranges(
        self, experiment_id: str
    ) -> Mapping[str, Mapping[str, tuple[float, float]]]:
        self._all(experiment_id)
        return {"tria0": {"default": (0.25, 0.5)}}

    async def counts(self, experiment_id: str) -> Mapping[str, int]:
        names = trial_pb2.TrialState.Name
        states = [trial.state for trial in self._all(experiment_id).values()]
        return Counter(names(state).removeprefix("TRIAL_STATE_") for state in states)

    async def explain(
        self, experiment_id: str, trial_id: str = ""
    ) -> trial_service_pb2.ExplainTrialResponse:
        if not trial_id:
            self._manager.experiment(experiment_id)
            return trial_service_pb2.ExplainTrialResponse(
                verdict=trial_service_pb2.VERDICT_NOT_CREATED, summary="no slot"
            )
        trial = await self.get(experiment_id, trial_id)
        return trial_service_pb2.ExplainTrialResponse(
            trial_id=trial.id,
            state=trial.state,
            verdict=trial_service_pb2.VERDICT_FAILED,
            summary="it failed",
            reasons=[
                trial_service_pb2.Reason(
                    kind=trial_service_pb2.REASON_KIND_EXIT_CODE, text="exit code 1"
                )
            ],
            exit_code=1,
        )


def _size(asked: int) -> int:
    return page_size(asked, default=100, limit=10_000)


class InMemoryAnalyses:
    """`AnalysisUseCases` over the trials of a manager in memory."""

    def __init__(self, manager: InMemoryManager) -> None:
        self._manager = manager

    async def importance(self, experiment_id: str, metric: str = "") -> Importance:
        if metric == "nothing":
            raise FailedPreconditionError("importance needs at least 4 trials")
        objective = metric_pb2.Objective(metric=metric or "default")
        found = pb.MeasureImportanceResponse(interactions=0.25, outcomes=3)
        found.parameters.add(name="x", share=0.75)
        return Importance(objective, found)

    async def front(
        self, experiment_id: str, objectives: Sequence[metric_pb2.Objective] = ()
    ) -> Front:
        wanted = list(objectives) or [metric_pb2.Objective(metric="default")]
        return Front(wanted, list(self._manager.trials[experiment_id].values())[:2], 3, 0, 1)


class InMemoryAgents:
    """`AgentUseCases` of two agents: one connected, one that its platform does not start."""

    async def list(
        self, *, page_size: int = 0, page_token: str = ""
    ) -> Page[experiment_service_pb2.RunnerSummary]:
        connected = experiment_service_pb2.RunnerSummary(
            runner_id="box", pool="local", host_name="box.lab", trial_count=1, version="4"
        )
        connected.last_seen_at.FromMilliseconds(1_700_000_000_000)
        connected.trials.add(experiment_id="abcd1234", trial_id="tria0", attempt=2)
        pending = experiment_service_pb2.RunnerSummary(
            runner_id="exp-a-1",
            pool="exp-a",
            platform="slurm",
            state=pool_pb2.POOL_AGENT_STATE_PENDING,
            slots=4,
            reason="Priority",
        )
        return _cut([connected, pending], page_token, page_size or 100)

    def pool_states(self) -> Sequence[pool_pb2.PoolState]:
        state = pool_pb2.PoolState(pool="exp-a", reason="no nodes", remedy="ask for fewer GPUs")
        state.agents.add(name="exp-a-1", platform="slurm", state=pool_pb2.POOL_AGENT_STATE_PENDING)
        return [state]

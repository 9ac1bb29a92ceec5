"""Dependencies of the web handlers: ports of the use cases, and the value that carries them.

`Experiments`, `Trials` and `Analyses` of `svc_manager.usecases` implement the ports and document
each method.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nni_proto.common.v1 import metric_pb2, remarks_pb2, value_pb2
from nni_proto.experiment.v1 import event_pb2, experiment_pb2, experiment_service_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from svc_common.experiment_files import ExperimentRoots
from svc_manager.domain.inputs import ChangeRemarks
from svc_manager.pagination import Page
from svc_manager.ports import FolderOpener
from svc_manager.telemetry.metrics import Instruments
from svc_manager.usecases.analyses import Front, Importance
from svc_manager.usecases.experiments import (
    ActivatedExperiment,
    ConfigChange,
    NewExperiment,
    ReopenRequest,
)
from svc_manager.usecases.trials import TrialFilter
from svc_manager.web.forwarder import HttpForwarder
from svc_manager.web.tensorboards import TensorBoards


class ExperimentUseCases(Protocol):
    """Interface of the use cases of experiments that REST handlers call."""

    async def create(self, new: NewExperiment) -> ActivatedExperiment:
        """Check and start an experiment, or find it by a repeated request id; return it."""
        ...

    async def get(self, experiment_id: str) -> ActivatedExperiment:
        """Return an experiment, a large search space loaded, and the addresses of its page."""
        ...

    async def stop(self, experiment_id: str, request_id: str = "") -> experiment_pb2.Experiment:
        """Stop an experiment; return it when it is STOPPED."""
        ...

    async def resume(self, reopening: ReopenRequest) -> ActivatedExperiment:
        """Resume a stopped experiment with its trials and a new algorithm; return it."""
        ...

    async def delete(self, experiment_id: str, request_id: str = "") -> int:
        """Delete a stopped experiment; return about how many trial folders are deleted later."""
        ...

    async def run_again(
        self, experiment_id: str, request_id: str = "", *, new_seed: bool = False
    ) -> ActivatedExperiment:
        """Create and start a copy of an experiment, without trials; `new_seed`: another seed."""
        ...

    async def list(
        self,
        *,
        include_stopped: bool = False,
        id_prefix: str = "",
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[experiment_pb2.Experiment]:
        """Return a page of experiments, newest first, by id prefix; stopped ones on request."""
        ...

    async def update(
        self, experiment_id: str, change: ConfigChange, request_id: str = ""
    ) -> experiment_pb2.Experiment:
        """Change budgets, search space, tuner or agent limits; return the changed experiment."""
        ...

    async def change_remarks(
        self, experiment_id: str, change: ChangeRemarks, request_id: str = ""
    ) -> remarks_pb2.Remarks:
        """Set note, star or the whole tag list of experiment or trial; return all its remarks."""
        ...

    async def import_data(
        self, experiment_id: str, data: value_pb2.Value, request_id: str = ""
    ) -> Sequence[str]:
        """Import samples into the experiment's algorithm; return warnings on broken constraints."""
        ...

    async def export(
        self,
        experiment_id: str,
        *,
        include_intermediates: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[experiment_service_pb2.ExportedTrial]:
        """Return a page of trials with a final result, on request with intermediate metrics."""
        ...

    def follow_events(
        self,
        experiment_id: str,
        after: event_pb2.EventPosition | None = None,
        *,
        follow: bool = True,
    ) -> AsyncGenerator[experiment_service_pb2.FollowEventsResponse, None]:
        """Yield an experiment's events after a position, masked; `follow`: also new ones."""
        ...

    def follow_logs(
        self,
        experiment_id: str,
        source: experiment_service_pb2.LogSource.ValueType,
        *,
        trial_id: str = "",
        offset: int = 0,
        attempt: int = 0,
        follow: bool = False,
    ) -> AsyncGenerator[experiment_service_pb2.FollowLogsResponse, None]:
        """Yield an experiment's or trial's log from byte ``offset`` on, on request as it grows."""
        ...

    async def log_size(
        self,
        experiment_id: str,
        source: experiment_service_pb2.LogSource.ValueType,
        *,
        trial_id: str = "",
    ) -> int:
        """Return the current length of an experiment's or trial's log in bytes."""
        ...

    async def fetch_output(self, experiment_id: str, trial_id: str) -> None:
        """Download an ended trial's stored output into its folder here, unless that exists."""
        ...


class TrialUseCases(Protocol):
    """Interface of the use cases of trials that REST handlers call."""

    async def list(
        self,
        experiment_id: str,
        trial_filter: TrialFilter | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[trial_pb2.Trial]:
        """Return a page of an experiment's trials, by filter and order."""
        ...

    async def get(self, experiment_id: str, trial_id: str) -> trial_pb2.Trial:
        """Return one trial, with large parameters loaded; raise if it is unknown."""
        ...

    async def kill(
        self, experiment_id: str, trial_id: str, request_id: str = ""
    ) -> trial_pb2.Trial:
        """Request the stop of a live trial as USER_CANCELED; return the trial."""
        ...

    async def add(
        self, experiment_id: str, parameters: value_pb2.Value, request_id: str = ""
    ) -> int:
        """Queue a trial with parameters of the user; return its parameter id."""
        ...

    async def metrics(
        self,
        experiment_id: str,
        trial_id: str = "",
        type_: metric_pb2.MetricType.ValueType = metric_pb2.METRIC_TYPE_UNSPECIFIED,
        *,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[trial_service_pb2.TrialMetric]:
        """Return a page of the metrics of one trial or of all trials, by type."""
        ...

    async def intermediate_ranges(
        self, experiment_id: str
    ) -> Mapping[str, Mapping[str, tuple[float, float]]]:
        """Return {trial id: {metric: (smallest, largest finite intermediate number)}}."""
        ...

    async def counts(self, experiment_id: str) -> Mapping[str, int]:
        """Return the number of trials by the name of their state, without empty states."""
        ...

    async def explain(
        self, experiment_id: str, trial_id: str = ""
    ) -> trial_service_pb2.ExplainTrialResponse:
        """Explain the state of a trial; empty id: why the next trial was not created yet."""
        ...


class AnalysisUseCases(Protocol):
    """Interface of the analyses (importance, Pareto front) that REST handlers call."""

    async def importance(self, experiment_id: str, metric: str = "") -> Importance:
        """Return hyperparameters' importance for a metric; empty: for the first objective."""
        ...

    async def front(
        self, experiment_id: str, objectives: Sequence[metric_pb2.Objective] = ()
    ) -> Front:
        """Return the trials that no other one dominates in the objectives (Pareto front)."""
        ...


class AgentUseCases(Protocol):
    """Interface of the use cases of agents and pools that REST handlers call."""

    async def list(
        self, *, page_size: int = 0, page_token: str = ""
    ) -> Page[experiment_service_pb2.RunnerSummary]:
        """Return a page of agents' summaries, sorted by id."""
        ...

    def pool_states(self) -> Sequence[pool_pb2.PoolState]:
        """Return the last known states of all pools, by name."""
        ...


class NoAgents:
    """`AgentUseCases` of a manager without agents."""

    async def list(
        self, *, page_size: int = 0, page_token: str = ""
    ) -> Page[experiment_service_pb2.RunnerSummary]:
        """Return an empty page."""
        del page_size, page_token
        return Page([])

    def pool_states(self) -> Sequence[pool_pb2.PoolState]:
        """Return no states."""
        return ()


@dataclass(frozen=True, slots=True)
class WebDependencies:
    """Use cases, version, TensorBoards, metrics and forwarder that REST handlers need."""

    experiments: ExperimentUseCases
    trials: TrialUseCases
    version: str
    """Version of NNI."""
    grpc_address: str
    """`host:port` of the manager's gRPC services."""
    tensorboards: TensorBoards = field(default_factory=TensorBoards)
    analyses: AnalysisUseCases | None = None
    """Analyses of results; None: the manager has no dispatcher."""
    agents: AgentUseCases = field(default_factory=NoAgents)
    instruments: Instruments | None = None
    """Metrics of the manager, served at `/metrics`; None: no metrics."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment of experiments created over REST, where no client sends its own."""
    other_versions: Callable[[], Mapping[str, str]] = dict
    """Returns the incompatible versions of agents, by agent id."""
    folders: FolderOpener = field(default_factory=ExperimentRoots)
    """Opens the experiments' folders."""
    forwarder: HttpForwarder | None = None
    """Proxy to the other managers; None: this is the only manager."""

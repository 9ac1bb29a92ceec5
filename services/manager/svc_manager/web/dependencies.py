"""What the web face needs from the manager's use cases: that part of them which it calls.

`Experiments` and `Trials` of `svc_manager.usecases` are the real ones; what each method promises
stands there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import event_pb2, experiment_pb2, experiment_service_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from svc_manager.pagination import Page
from svc_manager.telemetry.metrics import Instruments
from svc_manager.usecases.analyses import Front, Importance
from svc_manager.usecases.experiments import ActivatedExperiment, ConfigChange, NewExperiment
from svc_manager.usecases.trials import TrialFilter
from svc_manager.web.forwarder import Forwarding
from svc_manager.web.tensorboards import TensorBoards


class ExperimentUseCases(Protocol):
    """What the web face asks and does about experiments."""

    async def create(self, new: NewExperiment) -> ActivatedExperiment:
        """Check everything, then create and start."""
        ...

    async def get(self, experiment_id: str) -> ActivatedExperiment:
        """Give one experiment and the addresses of its page."""
        ...

    async def list(
        self,
        *,
        include_stopped: bool = False,
        id_prefix: str = "",
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[experiment_pb2.Experiment]:
        """List experiments, newest first."""
        ...

    async def update(
        self, experiment_id: str, change: ConfigChange, request_id: str = ""
    ) -> experiment_pb2.Experiment:
        """Change budgets or search space."""
        ...

    async def import_data(
        self, experiment_id: str, data: value_pb2.Value, request_id: str = ""
    ) -> Sequence[str]:
        """Feed samples to the algorithm; give warnings."""
        ...

    async def export(
        self,
        experiment_id: str,
        *,
        include_intermediates: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[experiment_service_pb2.ExportedTrial]:
        """List the trials with a final result."""
        ...

    def follow_events(
        self,
        experiment_id: str,
        after: event_pb2.EventPosition | None = None,
        *,
        follow: bool = True,
    ) -> AsyncGenerator[experiment_service_pb2.FollowEventsResponse, None]:
        """Give the events behind a position, and those appended later."""
        ...

    def follow_logs(
        self,
        experiment_id: str,
        source: experiment_service_pb2.LogSource.ValueType,
        *,
        trial_id: str = "",
        offset: int = 0,
        follow: bool = False,
    ) -> AsyncGenerator[experiment_service_pb2.FollowLogsResponse, None]:
        """Give a log from byte ``offset`` on."""
        ...

    async def bring_output(self, experiment_id: str, trial_id: str) -> None:
        """Make the folder of a trial that is over and ran on another machine."""
        ...


class TrialUseCases(Protocol):
    """What the web face asks and does about trials."""

    async def list(
        self,
        experiment_id: str,
        trial_filter: TrialFilter | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[trial_pb2.Trial]:
        """List trials."""
        ...

    async def get(self, experiment_id: str, trial_id: str) -> trial_pb2.Trial:
        """Give one trial."""
        ...

    async def kill(
        self, experiment_id: str, trial_id: str, request_id: str = ""
    ) -> trial_pb2.Trial:
        """Have a live trial end as USER_CANCELED."""
        ...

    async def add(
        self, experiment_id: str, parameters: value_pb2.Value, request_id: str = ""
    ) -> int:
        """Have a trial run with parameters that the user chose; give its parameter id."""
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
        """List reports of one trial, or of all."""
        ...

    async def counts(self, experiment_id: str) -> Mapping[str, int]:
        """Give the number of trials by the name of their state."""
        ...

    async def explain(
        self, experiment_id: str, trial_id: str = ""
    ) -> trial_service_pb2.ExplainTrialResponse:
        """Say why a trial is as it is; empty id: why the next one is not there yet."""
        ...


class AnalysisUseCases(Protocol):
    """What the web face asks about results."""

    async def importance(self, experiment_id: str, metric: str = "") -> Importance:
        """Tell which hyperparameters explain a metric."""
        ...

    async def front(
        self, experiment_id: str, objectives: Sequence[metric_pb2.Objective] = ()
    ) -> Front:
        """Tell which trials no other one beats in every objective."""
        ...


@dataclass(frozen=True, slots=True)
class Installation:
    """What the handlers work with; one for all listeners."""

    experiments: ExperimentUseCases
    trials: TrialUseCases
    version: str
    """Version of NNI."""
    grpc_address: str
    """`host:port` of the manager's gRPC services."""
    tensorboards: TensorBoards = field(default_factory=TensorBoards)
    analyses: AnalysisUseCases | None = None
    """None: there is no dispatcher to ask."""
    instruments: Instruments | None = None
    """Counts requests, and has what `/metrics` shows; None: nobody looks."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What experiments get that are created over REST, where no client tells its own."""
    other_versions: Callable[[], Mapping[str, str]] = dict
    """Gives the versions of agents that do not fit to this one, by the agents' ids."""
    forwarding: Forwarding | None = None
    """Asks other managers about their experiments; None: there are no others."""

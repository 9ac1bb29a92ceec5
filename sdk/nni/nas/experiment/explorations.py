"""Explorations: searches whose strategy is hosted by the NAS service."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from nni.experiment.byte_client import upload_value
from nni.experiment.client import ManagerClient
from nni.experiment.conversion import config_to_proto
from nni.experiment.environment import experiment_environment
from nni.experiment.errors import WrongStateError
from nni.experiment.local_shape import ensure_local_shape
from nni.experiment.preflight import check_start
from nni.nas.execution.training_service import TrainingServiceExecutionEngine
from nni.nas.execution.trial_platform import CandidateAdded, PlatformEvent
from nni.nas.experiment.config import NasExperimentConfig
from nni.nas.experiment.platform_trials import (
    ManagerTrialPlatform,
    add_model_graph,
    experiment_config,
)
from nni.nas.host.document import dump_exploration
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import Strategy
from nni.nas.strategy.delegated import DelegatedStrategy
from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2
from nni_wire.values import from_value

_KEY: Final = "key"
"""Entry of the provenance of a candidate."""


def exploration_config(
    config: NasExperimentConfig,
    search_space: Mapping[str, Any] | None = None,
    model_graph: Mapping[str, Any] | None = None,
) -> config_pb2.ExperimentConfig:
    """Return the message that configures an exploration's experiment, without its document.

    Args:
        config: of the search, in its canonical form.
        search_space: what `search_space_of` returned, for the page.
        model_graph: what `model_graph_of` returned, for the page.
    """
    message = config_to_proto(experiment_config(config, search_space))
    message.ClearField("tuner")  # the service answers in its place
    add_model_graph(message, model_graph)
    message.nas.model_format = config.model_format.name
    return message


def create_exploration(
    config: NasExperimentConfig,
    space: ExecutableModelSpace,
    strategy: Strategy,
    *,
    port: int = 0,
    search_space: Mapping[str, Any] | None = None,
    model_graph: Mapping[str, Any] | None = None,
) -> str:
    """Store the document of an exploration and create its experiment; return the id.

    Brings the services of this machine up if they are not.

    Args:
        config: of the search, in its canonical form.
        space: space with evaluator, in a format that travels.
        strategy: strategy that was not used yet.
        port: of the experiment's page; 0: none.
        search_space: what `search_space_of` returned, for the page.
        model_graph: what `model_graph_of` returned, for the page.

    Raises:
        ValueError: strategy or space cannot travel; nothing was started.
        nni.experiment.errors.ExperimentError: the services refuse it, or cannot be reached.
    """
    folder = Path(config.experiment_working_directory) / "payloads" if config.spill else None
    document = dump_exploration(space, strategy, folder).encode()
    check_start(experiment_config(config, search_space), port)
    message = exploration_config(config, search_space, model_graph)
    message.nas.strategy = _class_name(strategy)
    message.nas.evaluator = _class_name(space.evaluator)
    with ManagerClient(ensure_local_shape()) as client:
        message.nas.document.CopyFrom(upload_value(client, document))
        answer = client.create(
            message,
            port=port,
            url_prefix="",
            environment=experiment_environment(),
            interpreter=sys.executable,
        )
    return answer.experiment.id


def _class_name(part: object) -> str:
    kind = getattr(part, "trace_symbol", None) or type(part)
    return str(getattr(kind, "__qualname__", kind))


class ExplorationTrials(ManagerTrialPlatform):
    """`TrialPlatform` that follows an exploration, to which its own strategy adds trials.

    Args:
        config: of the search, in its canonical form.
        space: space with evaluator.
        strategy: strategy that the service gets.
        port: of the experiment's page; 0: none.
        search_space: what `search_space_of` returned, for the page.
        model_graph: what `model_graph_of` returned, for the page.
    """

    def __init__(
        self,
        config: NasExperimentConfig,
        space: ExecutableModelSpace,
        strategy: Strategy,
        port: int = 0,
        search_space: Mapping[str, Any] | None = None,
        model_graph: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(config, port, search_space, model_graph)
        self._space = space
        self._added: deque[CandidateAdded] = deque()
        """Candidates before the event in hand."""
        self._strategy = strategy

    def open(self, experiment_id: str | None) -> str:
        """Create an exploration, attach to a running or resume a stopped one; return its id."""
        if experiment_id is None:
            experiment_id = create_exploration(
                self._config,
                self._space,
                self._strategy,
                port=self._port,
                search_space=self._search_space,
                model_graph=self._model_graph,
            )
        return super().open(experiment_id)

    def add(self, key: str, parameters: Mapping[str, Any]) -> None:
        """Raise WrongStateError: the strategy of the service adds all models.

        Raises:
            WrongStateError: always.
        """
        del parameters
        raise WrongStateError(
            f"model {key} cannot be added: the strategy runs in the NAS service; use "
            "execution_engine='ts' for a strategy in this process"
        )

    def events(self, *, follow: bool) -> Iterator[PlatformEvent]:
        """Yield the events not yielded before, in order, with those of candidates of the service.

        Args:
            follow: yield later ones, too, until the experiment has ended or was closed.
        """
        for event in super().events(follow=follow):
            while self._added:
                yield self._added.popleft()
            yield event

    def _event_of(self, message: event_pb2.Event) -> PlatformEvent | None:
        for item in message.parameters_generated.parameters:
            key = self._keys[item.parameter_id] = _key_of(item)
            self._added.append(CandidateAdded(key, _parameters(item.parameters)))
        return super()._event_of(message)


class ExplorationEngine(TrainingServiceExecutionEngine):
    """Engine that follows an exploration: its models are those that the service submits.

    Args:
        platform: exploration that is followed.
        concurrency: number of trials that run at once.
    """

    def wait_models(self, *models: ExecutableModelSpace) -> None:
        """Wait until models are completed; without any, until the exploration takes no more.

        Args:
            *models: the models; none: until the exploration takes no more of them, and all have
                ended.

        Raises:
            RuntimeError: the connection with the services has failed.
        """
        if not models:
            self.wait_until(lambda: not self.budget_available())
        super().wait_models(*models)


class HostedStrategy(DelegatedStrategy):
    """Strategy that runs in the NAS service, as the client sees it: `run` waits for its end."""

    def _run(self) -> None:
        self.engine.wait_models()


def _key_of(item: event_pb2.GeneratedParameters) -> str:
    """Return a candidate's key: its parameter id, and the key of the strategy's process."""
    origin = from_value(item.provenance)
    key = origin.get(_KEY, "") if isinstance(origin, dict) else ""
    return f"{item.parameter_id}-{key}"


def _parameters(value: value_pb2.Value) -> Mapping[str, Any]:
    found = from_value(value)
    return found if isinstance(found, dict) else {}

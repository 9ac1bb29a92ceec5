"""Experiment of the platform to which an engine adds trials, over the API of the manager."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import grpc

from nni.experiment import Experiment, ExperimentConfig, RunMode
from nni.experiment.client import ManagerClient
from nni.experiment.config import AlgorithmConfig
from nni.experiment.config.quantities import duration_seconds
from nni.experiment.conversion import duration_message
from nni.experiment.errors import ExperimentError, WrongStateError
from nni.experiment.handle import ExperimentHandle
from nni.experiment.local_shape import ensure_local_shape
from nni.nas.execution.trial_platform import PlatformClosed, PlatformEvent
from nni.nas.experiment.config import NasExperimentConfig
from nni.nas.experiment.trial_log import TrialLog, parameters_in
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_wire.values import to_value

_logger = logging.getLogger(__name__)

WAITING_TUNER: Final = "nni.nas.execution.waiting_tuner.WaitingTuner"
"""Tuner of the experiment: it proposes nothing."""

_DERIVED: Final = frozenset({"execution_engine", "model_format", "experiment_type", "search_space"})
"""Fields of a search that an experiment does not have, or gets other values of."""
_OPEN: Final = tuple(
    state
    for state in experiment_pb2.ExperimentState.values()
    if state
    not in {
        experiment_pb2.EXPERIMENT_STATE_UNSPECIFIED,
        experiment_pb2.EXPERIMENT_STATE_INITIALIZED,
    }
)
"""States after the tuner was loaded; before that no trial can be added."""


def experiment_config(
    config: NasExperimentConfig, search_space: Mapping[str, Any] | None = None
) -> ExperimentConfig:
    """Return the configuration of a search's trials, with a tuner that proposes nothing.

    Args:
        config: of the search, in its canonical form.
        search_space: what `search_space_of` returned, for the page.
    """
    fields = {
        name: getattr(config, name)
        for name in ExperimentConfig.model_fields
        if name not in _DERIVED and name in config.model_fields_set
    }
    fields["trial_command"] = config.trial_command
    fields["trial_concurrency"] = config.trial_concurrency
    fields["training_service"] = config.training_service
    fields["search_space"] = dict(search_space or {})
    fields["tuner"] = AlgorithmConfig(class_name=WAITING_TUNER)
    return ExperimentConfig(**fields)


class _SearchExperiment(Experiment):
    """Experiment whose configuration also has the network of the model space."""

    def __init__(self, config: ExperimentConfig, model_graph: Mapping[str, Any] | None) -> None:
        super().__init__(config)
        self._model_graph = model_graph

    def _config_message(self, config: ExperimentConfig) -> config_pb2.ExperimentConfig:
        message = super()._config_message(config)
        add_model_graph(message, self._model_graph)
        return message


def add_model_graph(
    message: config_pb2.ExperimentConfig, model_graph: Mapping[str, Any] | None
) -> None:
    """Add the network of a model space to the configuration of an experiment, for the page.

    Args:
        message: changed in place.
        model_graph: what `model_graph_of` returned.
    """
    if model_graph is not None:
        message.model_graph.CopyFrom(to_value(dict(model_graph)))


class TrialExperiment(ExperimentHandle):
    """Handle of the experiment whose trials evaluate the models of a search.

    Args:
        client: of the manager; its owner closes it.
        experiment_id: the experiment.
    """

    def __init__(self, client: ManagerClient, experiment_id: str) -> None:
        super().__init__()
        self._attach(client, client.get(experiment_id).experiment, owned=False)

    @property
    def address(self) -> str:
        """Address of the manager's API, and the id of the experiment."""
        return f"grpc://{self._connected().endpoint.grpc}/{self.id}"


class ManagerTrialPlatform:
    """`TrialPlatform` that is an experiment of the services of this machine, or of a remote one.

    Args:
        config: of the search, in its canonical form.
        port: of the experiment's page; 0: none.
        search_space: what `search_space_of` returned, for the page.
        model_graph: what `model_graph_of` returned, for the page.
    """

    def __init__(
        self,
        config: NasExperimentConfig,
        port: int = 0,
        search_space: Mapping[str, Any] | None = None,
        model_graph: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = config
        self._port = port
        self._search_space = dict(search_space or {})
        self._model_graph = model_graph
        self._manager: ManagerClient | None = None
        self._id = ""
        self._position: event_pb2.EventPosition | None = None
        self._log = TrialLog()
        self._keys = self._log.keys
        self._closed = threading.Event()

    def open(self, experiment_id: str | None) -> str:
        """Create an experiment, attach to a running one, or resume a stopped one; return its id."""
        if experiment_id is None:
            config = experiment_config(self._config, self._search_space)
            experiment = _SearchExperiment(config, self._model_graph)
            # The search stops it; if this process is killed, trials go on until it is resumed.
            experiment.start(self._port, run_mode=RunMode.Detach)
            experiment_id = experiment.id
            self._manager = ManagerClient(ensure_local_shape())
        else:
            self._manager = ManagerClient(ensure_local_shape())
            self._reopen(experiment_id)
        self._id = experiment_id
        self._client.wait(experiment_id, _OPEN, lambda: None)
        return experiment_id

    def _reopen(self, experiment_id: str) -> None:
        """Resume an experiment if it was stopped, and set its limits to those of the search."""
        state = self._client.get(experiment_id).experiment.state
        if state == experiment_pb2.EXPERIMENT_STATE_STOPPED:
            Experiment.resume(experiment_id, self._port, wait_completion=False)
        duration = self._config.max_experiment_duration
        self._client.update(
            experiment_id,
            trial_concurrency=self._config.trial_concurrency,
            max_trial_number=self._config.max_trial_number,
            max_experiment_duration=(
                None if duration is None else duration_message(duration_seconds(duration))
            ),
        )

    @property
    def experiment(self) -> TrialExperiment | None:
        """Experiment of the trials; None before `open` and after `close`."""
        if self._manager is None or self._closed.is_set() or not self._id:
            return None
        return TrialExperiment(self._manager, self._id)

    @property
    def _client(self) -> ManagerClient:
        if self._manager is None:
            raise WrongStateError("the experiment of the search is not open; call open first")
        return self._manager

    def add(self, key: str, parameters: Mapping[str, Any]) -> None:
        """Add a trial, once per key, also if the manager is restarted meanwhile."""
        self._client.add_trial(self._id, to_value(dict(parameters)), key)

    def kill(self, trial_id: str) -> None:
        """Stop a trial; do nothing if it has ended."""
        try:
            self._client.kill_trial(self._id, trial_id)
        except WrongStateError:
            return

    def parameters(self, trial_id: str) -> Mapping[str, Any]:
        """Return the parameters of a trial."""
        return parameters_in(self._client.trial(self._id, trial_id).parameters)

    def events(self, *, follow: bool) -> Iterator[PlatformEvent]:
        """Yield the events not yielded before, in order; following ends with the experiment.

        Args:
            follow: yield later ones, too, until the experiment has ended or was closed.
        """
        stream = self._client.events(self._id, after=self._position, follow=follow)
        try:
            for item in stream:
                self._position = item.position
                event = self._event_of(item.event)
                if event is not None:
                    yield event
                if follow and isinstance(event, PlatformClosed) and event.is_final:
                    return
        except (grpc.RpcError, ExperimentError, ValueError):
            if not self._closed.is_set():  # `close` ends the channel under the stream
                raise
        finally:
            stream.close()

    def _event_of(self, message: event_pb2.Event) -> PlatformEvent | None:
        """Return a log event in the search's terms; None if the search does not use it."""
        return self._log.read(message)

    def close(self) -> None:
        """Stop the experiment, and end `events`; log a failure; may be called twice."""
        if self._manager is None or self._closed.is_set():
            return
        self._closed.set()
        try:
            self._manager.stop(self._id)
        except ExperimentError as error:
            _logger.warning("experiment %s was not stopped: %s", self._id, error)
        finally:
            self._manager.close()

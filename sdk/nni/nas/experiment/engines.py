"""Construction of the engine and of the executable space that a configuration names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nni.common.serializer.submission import submission_limit_bytes
from nni.nas.execution import ExecutionEngine
from nni.nas.execution.model_graph import model_graph_of
from nni.nas.execution.payload_files import PayloadFiles
from nni.nas.execution.search_space import search_space_of
from nni.nas.experiment.config import (
    CgoEngineConfig,
    ModelFormatConfig,
    NasExperimentConfig,
    SequentialEngineConfig,
)
from nni.nas.space import (
    ExecutableModelSpace,
    GraphModelSpace,
    RawFormatModelSpace,
    SimplifiedModelSpace,
)
from nni.nas.strategy.base import Strategy


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """What an engine is made for: network, executable space, strategy and port of the page."""

    model_space: object
    """Network with its choices."""
    space: ExecutableModelSpace
    """The same in the format of the configuration, with the evaluator."""
    strategy: Strategy
    """Strategy that decides on the models."""
    port: int = 0
    """Port of the page; 0: none."""


def _sequential(config: NasExperimentConfig, search: SearchTarget) -> ExecutionEngine:
    del search
    from nni.nas.execution.sequential import SequentialExecutionEngine

    engine: SequentialEngineConfig = config.execution_engine
    return SequentialExecutionEngine(
        engine.max_model_count, engine.max_duration, engine.continue_on_failure
    )


def _training_service(config: NasExperimentConfig, search: SearchTarget) -> ExecutionEngine:
    from nni.nas.execution.training_service import TrainingServiceExecutionEngine
    from nni.nas.execution.trial_signatures import TrialSigner
    from nni.nas.experiment.platform_trials import ManagerTrialPlatform

    described = search_space_of(search.model_space, search.space.simplify())
    graph = model_graph_of(search.model_space)
    platform = ManagerTrialPlatform(config, search.port, described, graph)
    return TrainingServiceExecutionEngine(
        platform,
        config.trial_concurrency or 1,
        config.max_trial_number,
        payloads=_payload_files(config) if config.spill else None,
        signer=TrialSigner(),
    )


def _payload_files(config: NasExperimentConfig) -> PayloadFiles:
    folder = Path(config.experiment_working_directory) / "payloads"
    return PayloadFiles(folder, submission_limit_bytes())


def _service(config: NasExperimentConfig, search: SearchTarget) -> ExecutionEngine:
    from nni.nas.experiment.explorations import ExplorationEngine, ExplorationTrials

    described = search_space_of(search.model_space, search.space.simplify())
    graph = model_graph_of(search.model_space)
    trials = ExplorationTrials(config, search.space, search.strategy, search.port, described, graph)
    return ExplorationEngine(trials, config.trial_concurrency or 1)


def _cgo(config: NasExperimentConfig, search: SearchTarget) -> ExecutionEngine:
    if not isinstance(search.space, GraphModelSpace):
        raise TypeError(
            f"model_format must be 'graph' with the engine 'cgo', got {config.model_format.name!r}"
        )
    from nni.nas.execution.cgo import CrossGraphOptimization

    engine: CgoEngineConfig = config.execution_engine
    machines = engine.training_service.machine_list
    if not machines or not all(machine.gpu_indices for machine in machines):
        raise ValueError(
            "gpu_indices of each remote machine must be listed with the engine 'cgo', got "
            f"{[machine.gpu_indices for machine in machines]}"
        )
    devices = sum(len(machine.gpu_indices) for machine in machines)
    return CrossGraphOptimization(
        _training_service(config, search),
        max_concurrency_cgo=engine.max_concurrency_cgo or devices,
        batch_waiting_time=engine.batch_waiting_time,
        devices=devices,
    )


_ENGINES: Final[dict[str, Callable[[NasExperimentConfig, SearchTarget], ExecutionEngine]]] = {
    "cgo": _cgo,
    "sequential": _sequential,
    "service": _service,
    "ts": _training_service,
}
"""Constructor by name of the engine, of a canonical configuration; the names are
`AVAILABLE_ENGINES` of the configuration."""

_FORMATS: Final[dict[str, type[ExecutableModelSpace]]] = {
    "graph": GraphModelSpace,
    "raw": RawFormatModelSpace,
    "simplified": SimplifiedModelSpace,
}
"""Class by name of the format."""


def create_engine(config: NasExperimentConfig, search: SearchTarget) -> ExecutionEngine:
    """Return a new engine of the kind that a canonical configuration names.

    Args:
        config: in its canonical form.
        search: space, strategy and port of the search.

    Raises:
        TypeError: the engine needs another format.
        ValueError: the configuration lacks what the engine needs.
    """
    return _ENGINES[config.execution_engine.name](config, search)


def client_strategy(config: NasExperimentConfig, strategy: Strategy) -> Strategy:
    """Return the strategy for this process: the given one, or one that follows it in the service.

    Args:
        config: in its canonical form.
        strategy: strategy of the search.
    """
    if config.execution_engine.name != "service":
        return strategy
    from nni.nas.experiment.explorations import HostedStrategy

    return HostedStrategy(strategy)


def create_space(
    config: NasExperimentConfig,
    model_space: Any,  # noqa: ANN401 - a mutable of the user
    evaluator: Any,  # noqa: ANN401 - anything with `evaluate`
) -> ExecutableModelSpace:
    """Return a new executable space in the configured format; raise TypeError if it does not fit.

    Args:
        config: in its canonical form.
        model_space: network with its choices; or graphs with mutators, for the graph format.
        evaluator: object that trains and measures a network.

    Raises:
        TypeError: the space cannot be written in this format.
    """
    model_format: ModelFormatConfig = config.model_format
    options = {name: value for name, value in model_format if name != "name" and value is not None}
    if not isinstance(model_space, GraphModelSpace):
        return _FORMATS[model_format.name].from_model(model_space, evaluator, **options)
    if model_format.name != "graph":
        raise TypeError(
            f"a {type(model_space).__name__} has the graph format, and the configuration names "
            f"{model_format.name!r}; set config.model_format = 'graph'"
        )
    return model_space.with_evaluator(evaluator)

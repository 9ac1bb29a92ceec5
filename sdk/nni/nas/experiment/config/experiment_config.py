"""`NasExperimentConfig`: the configuration of an architecture search."""

from __future__ import annotations

import inspect
import logging
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator

from nni.experiment.config import ExperimentConfig, LocalConfig
from nni.experiment.config.base import Flag
from nni.experiment.config.quantities import duration_seconds
from nni.experiment.config.training_services import new_training_service
from nni.nas.execution.trial import REUSE, SAVE
from nni.nas.experiment.config.engine_configs import (
    CgoEngineConfig,
    ExecutionEngineConfig,
    SequentialEngineConfig,
    ServiceEngineConfig,
)
from nni.nas.experiment.config.format_configs import ModelFormatConfig
from nni.nas.space import GraphModelSpace

if TYPE_CHECKING:
    from nni.nas.strategy.base import Strategy

_logger = logging.getLogger(__name__)

TRIAL_COMMAND: Final = "-m nni.nas.execution.training_service trial"
"""End of the command of a trial; the start is the interpreter."""

AVAILABLE_ENGINES: Final = frozenset({"cgo", "sequential", "service", "ts"})
"""Names of the engines that this version can start."""


class NasExperimentConfig(ExperimentConfig):
    """Configuration of an architecture search: experiment, engine, model format.

    Search space and trial command are derived from the model space, the code directory is the
    present one, and there is no tuner: none of them may be set.

    Args:
        execution_engine: name or configuration; not given: by the strategy, see `default`.
        model_format: name or configuration; not given: by the strategy.
        training_service_platform: name of the platform that the engine `ts` uses.
        **fields: further fields, in snake_case or camelCase.

    Raises:
        ValueError: a name or a field is wrong.
        TypeError: an engine or a format is neither a name nor a configuration.

    Examples:
        >>> from nni.nas.experiment import NasExperimentConfig
        >>> config = NasExperimentConfig("sequential", "raw", max_trial_number=10)
        >>> config.execution_engine.name, config.model_format.name
        ('sequential', 'raw')
        >>> config.to_dict()["executionEngine"]["name"]
        'sequential'
    """

    experiment_type: Literal["nas"] = "nas"
    """Kind of the experiment."""
    execution_engine: Annotated[Any, BeforeValidator(ExecutionEngineConfig.of)] = None
    """Engine that evaluates models; a name becomes a configuration."""
    model_format: Annotated[Any, BeforeValidator(ModelFormatConfig.of)] = None
    """Format of models; a name becomes a configuration."""
    spill: Flag = False
    """Whether pickles of more than 64 KB, or `PICKLE_SIZE_LIMIT`, go to files in
    `<working directory>/payloads` that are named by their hash, instead of being refused. All
    machines must reach the folder under the same path."""
    worker_reuse: Flag = False
    """Whether a process evaluates one model after another, each as its own trial; otherwise each
    model has a process of its own."""
    save_models: Flag = False
    """Whether each trial leaves the files of its model in its folder: the sample, the code of a
    graph, and the trained weights. `nnictl nas fetch` gets them."""

    def __init__(
        self,
        execution_engine: ExecutionEngineConfig | str | None = None,
        model_format: ModelFormatConfig | str | None = None,
        training_service_platform: str | None = None,
        **fields: Any,  # noqa: ANN401 - pydantic checks them
    ) -> None:
        given = {"execution_engine": execution_engine, "model_format": model_format}
        fields.update((name, value) for name, value in given.items() if value is not None)
        if training_service_platform is not None:
            fields["training_service"] = new_training_service(training_service_platform)
        super().__init__(**fields)

    @classmethod
    def default(
        cls,
        model_space: object,
        evaluator: object,
        strategy: Strategy,
    ) -> Self:
        """Return the default: one-shot in this process, otherwise local trials, one at a time.

        Args:
            model_space: the space.
            evaluator: the evaluator.
            strategy: the strategy.

        Returns:
            The raw format and the sequential engine for a one-shot strategy or a supernet;
            otherwise trials on this machine, one at a time, and the simplified format, or that of
            graphs if the space is a `GraphModelSpace`.
        """
        del evaluator
        if strategy.is_one_shot or getattr(model_space, "is_supernet", False):
            return cls("sequential", "raw")
        _warn_of_unused_gpus()
        model_format = "graph" if isinstance(model_space, GraphModelSpace) else "simplified"
        return cls("ts", model_format, "local", trial_concurrency=1)

    def canonical(self, model_space: object, evaluator: object, strategy: Strategy) -> Self:
        """Return a checked copy, with engine, format and trial command filled in.

        Args:
            model_space: the space.
            evaluator: the evaluator.
            strategy: the strategy, which decides what is not given.

        Returns:
            A copy with engine, format, command and limits of the engine.

        Raises:
            ValueError: a field is set that is derived, or a rule of the engine is broken.
        """
        self._check_derived_fields()
        config = self.model_copy(deep=True)
        default = type(self).default(model_space, evaluator, strategy)
        config.execution_engine = config.execution_engine or default.execution_engine
        config.model_format = config.model_format or default.model_format
        config.trial_command = f"{shlex.quote(sys.executable)} {TRIAL_COMMAND}"
        if config.worker_reuse:
            config.trial_command += f" {REUSE}"
        if config.save_models:
            config.trial_command += f" {SAVE}"
        if isinstance(config.execution_engine, SequentialEngineConfig):
            _complete_sequential(config, config.execution_engine)
        elif config.training_service is None:
            config.training_service = default.training_service or LocalConfig()
        config.trial_concurrency = config.trial_concurrency or 1
        if isinstance(config.execution_engine, CgoEngineConfig):
            _complete_cgo(config, config.execution_engine)
        if isinstance(config.execution_engine, ServiceEngineConfig):
            if strategy.is_one_shot and config.model_format.name == "raw":
                config.model_format = ModelFormatConfig(name="simplified")
            _check_hosted(config.model_format, evaluator, strategy)
        return config

    def _check_derived_fields(self) -> None:
        if self.search_space or self.search_space_file is not None:
            raise ValueError(
                "search_space must not be set, it is derived from the model space; "
                f"got {self.search_space or str(self.search_space_file)!r:.200}"
            )
        if Path(self.trial_code_directory).resolve() != Path.cwd().resolve():
            raise ValueError(
                "trial_code_directory must be the present directory, got "
                f"{str(self.trial_code_directory)!r}; start Python there instead"
            )
        command = (self.trial_command or "").removesuffix(f" {SAVE}").removesuffix(f" {REUSE}")
        if command and not command.endswith(TRIAL_COMMAND):
            raise ValueError(
                "trial_command must not be set, models are trained by the evaluator; "
                f"got {self.trial_command!r:.200}"
            )


# Without this, pydantic would list every field as an argument, in camelCase.
NasExperimentConfig.__signature__ = inspect.signature(NasExperimentConfig.__init__)


def _complete_sequential(config: NasExperimentConfig, engine: SequentialEngineConfig) -> None:
    for name in ("worker_reuse", "save_models"):
        if getattr(config, name):
            raise ValueError(
                f"{name} must be False with the sequential engine, which has no trial for a "
                "model; use execution_engine='ts'"
            )
    if config.trial_concurrency not in {None, 1}:
        raise ValueError(
            "trial_concurrency must be 1 with the sequential engine, "
            f"got {config.trial_concurrency}"
        )
    if not isinstance(config.training_service, LocalConfig | None):
        _logger.warning(
            "the sequential engine ignores training_service: it evaluates in this process"
        )
    config.training_service = LocalConfig()
    if engine.max_model_count is None:
        engine.max_model_count = config.max_trial_number
    duration = config.max_trial_duration or config.max_experiment_duration
    if engine.max_duration is None and duration is not None:
        engine.max_duration = duration_seconds(duration)


def _complete_cgo(config: NasExperimentConfig, engine: CgoEngineConfig) -> None:
    engine.training_service = engine.training_service or config.training_service
    platform = getattr(engine.training_service, "platform", None)
    if platform != "remote":
        raise TypeError(
            f"training_service of the engine 'cgo' must be that of remote machines, got {platform}"
        )
    if config.save_models:
        raise ValueError(
            "save_models must be False with the engine 'cgo', whose trials merge models"
        )
    config.training_service = engine.training_service


def _check_hosted(model_format: ModelFormatConfig, evaluator: object, strategy: Strategy) -> None:
    if strategy.is_one_shot:
        _check_trained_in_a_trial(model_format, evaluator, strategy)
    if model_format.name == "raw":
        raise ValueError(
            "model_format must not be 'raw' with execution_engine='service': such models do not "
            "leave their process; use model_format='simplified'"
        )


def _check_trained_in_a_trial(
    model_format: ModelFormatConfig, evaluator: object, strategy: Strategy
) -> None:
    from nni.nas.strategy.oneshot.base import OneShotStrategy, check_evaluator

    name = type(strategy).__name__
    if not isinstance(strategy, OneShotStrategy):
        raise ValueError(  # noqa: TRY004 - another engine takes it
            "execution_engine must not be 'service' for a strategy that trains one supernet and "
            f"is no OneShotStrategy, as with middleware; got {name}; use "
            "execution_engine='sequential'"
        )
    if model_format.name != "simplified":
        raise ValueError(
            f"model_format must be 'simplified' for {name} with execution_engine='service', got "
            f"{model_format.name!r}"
        )
    check_evaluator(evaluator, name)


def _warn_of_unused_gpus() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        _logger.warning(
            "this machine has GPUs, and none is requested; set trial_gpu_number, and "
            "use_active_gpu of training_service, to use them"
        )

"""`RetiariiExeConfig`: the configuration of an experiment of NNI 2.x."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from nni.experiment.config import ExperimentConfig
from nni.experiment.config.base import Integer, Text
from nni.experiment.config.training_services import new_training_service
from nni.nas.experiment import NasExperimentConfig
from nni.nas.experiment.config import (
    CgoEngineConfig,
    ExecutionEngineConfig,
    GraphModelFormatConfig,
    ModelFormatConfig,
    RawModelFormatConfig,
    SequentialEngineConfig,
    SimplifiedModelFormatConfig,
    TrainingServiceEngineConfig,
)
from nni.retiarii.deprecation import warn_once

_RESERVED: Final = ("search_space", "trial_command")
"""Fields that follow from the base model."""
_OF_THIS_CLASS: Final = (
    *_RESERVED,
    *("batch_waiting_time", "benchmark", "devices", "dummy_input", "execution_engine"),
    "max_concurrency_cgo",
)
"""Fields that the configuration of `nni.nas` has elsewhere, or not at all."""


class RetiariiExeConfig(ExperimentConfig):
    """Configuration of a search of NNI 2.x, by platform and fields; translated to `nni.nas`.

    Args:
        training_service_platform: name of the platform, such as `local`.
        **fields: further fields, in snake_case or camelCase.

    Raises:
        AttributeError: a field is set that follows from the base model: `search_space` or
            `trial_command`.
    """

    execution_engine: Any = "py"
    """`py`, `base`, `cgo`, `benchmark`, or the name or configuration of an engine of `nni.nas`."""
    dummy_input: list[Integer] | None = None
    """Shape of an input, from which the shapes of all tensors of a graph follow."""
    benchmark: Text | None = None
    """`nasbench101` or `nasbench201`, for the engine `benchmark`."""
    devices: Any = None
    """Without effect: `trial_gpu_number` and the platform decide."""
    max_concurrency_cgo: Annotated[Integer, Field(ge=1)] | None = None
    """Models that the engine `cgo` trains at once in one trial."""
    batch_waiting_time: Annotated[Integer, Field(ge=0)] | None = None
    """Seconds that the engine `cgo` waits for models that can be trained together."""

    def __init__(
        self,
        training_service_platform: str | None = None,
        **fields: Any,  # noqa: ANN401 - pydantic checks them
    ) -> None:
        warn_once("experiment.pytorch.RetiariiExeConfig", "nni.nas.experiment.NasExperimentConfig")
        for name in _RESERVED:
            if fields.get(name) is not None:
                raise _reserved(name)
        if training_service_platform is not None:
            fields["training_service"] = new_training_service(training_service_platform)
        super().__init__(**fields)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _RESERVED:
            raise _reserved(name)
        super().__setattr__(name, value)

    def translated(self) -> NasExperimentConfig:
        """Return a new `NasExperimentConfig` with the same meaning; ValueError: unknown engine.

        Raises:
            ValueError: no engine has the name `execution_engine`.
        """
        engine, model_format = self._engine_and_format()
        fields = {
            name: getattr(self, name)
            for name in self.model_fields_set
            if name not in _OF_THIS_CLASS
        }
        config = NasExperimentConfig(engine, model_format)
        for name, value in fields.items():
            setattr(config, name, value)
        return config

    def _engine_and_format(self) -> tuple[ExecutionEngineConfig, ModelFormatConfig]:
        match self.execution_engine:
            case "py":
                return TrainingServiceEngineConfig(), SimplifiedModelFormatConfig()
            case "base":
                return TrainingServiceEngineConfig(), self._graph_format()
            case "cgo":
                engine = CgoEngineConfig(max_concurrency_cgo=self.max_concurrency_cgo)
                if self.batch_waiting_time is not None:
                    engine.batch_waiting_time = self.batch_waiting_time
                return engine, self._graph_format()
            case "benchmark":
                return SequentialEngineConfig(), RawModelFormatConfig()
        of_nas = ExecutionEngineConfig.of(self.execution_engine)
        assert isinstance(of_nas, ExecutionEngineConfig)
        if isinstance(of_nas, SequentialEngineConfig):
            return of_nas, RawModelFormatConfig()
        return of_nas, SimplifiedModelFormatConfig()

    def _graph_format(self) -> GraphModelFormatConfig:
        return GraphModelFormatConfig(dummy_input=self.dummy_input)


def _reserved(name: str) -> AttributeError:
    return AttributeError(
        f"{name} of RetiariiExeConfig is reserved: it follows from the base model and must not be "
        "set"
    )

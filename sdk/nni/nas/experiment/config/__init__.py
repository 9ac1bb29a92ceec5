"""Configurations of architecture searches, of their engines and of model formats."""

from nni.nas.experiment.config.engine_configs import (
    CgoEngineConfig,
    ExecutionEngineConfig,
    SequentialEngineConfig,
    ServiceEngineConfig,
    TrainingServiceEngineConfig,
)
from nni.nas.experiment.config.experiment_config import NasExperimentConfig
from nni.nas.experiment.config.format_configs import (
    GraphModelFormatConfig,
    ModelFormatConfig,
    RawModelFormatConfig,
    SimplifiedModelFormatConfig,
)

__all__ = [
    "CgoEngineConfig",
    "ExecutionEngineConfig",
    "GraphModelFormatConfig",
    "ModelFormatConfig",
    "NasExperimentConfig",
    "RawModelFormatConfig",
    "SequentialEngineConfig",
    "ServiceEngineConfig",
    "SimplifiedModelFormatConfig",
    "TrainingServiceEngineConfig",
]

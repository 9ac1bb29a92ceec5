"""Configuration of experiments (schema v2): one class for each section of the file."""

from nni.experiment.config.algorithm import AlgorithmConfig, CustomAlgorithmConfig
from nni.experiment.config.aml_service import AmlConfig
from nni.experiment.config.dlc_service import DlcConfig
from nni.experiment.config.experiment_config import ExperimentConfig
from nni.experiment.config.experiment_fields import ConstraintConfig, ObjectiveConfig
from nni.experiment.config.kubernetes_services import KubernetesConfig
from nni.experiment.config.listed_tuners import ListedTunerConfig
from nni.experiment.config.openpai_service import OpenpaiConfig
from nni.experiment.config.operator_services import (
    AdlConfig,
    FrameworkControllerConfig,
    KubeflowConfig,
)
from nni.experiment.config.pool_services import PoolConfig
from nni.experiment.config.ray_service import RayConfig
from nni.experiment.config.shared_storage import AzureBlobConfig, NfsConfig, SharedStorageConfig
from nni.experiment.config.training_service_base import TrainingServiceConfig
from nni.experiment.config.training_services import (
    LocalConfig,
    RemoteConfig,
    RemoteMachineConfig,
    SlurmConfig,
)

__all__ = [
    "AdlConfig",
    "AlgorithmConfig",
    "AmlConfig",
    "AzureBlobConfig",
    "ConstraintConfig",
    "CustomAlgorithmConfig",
    "DlcConfig",
    "ExperimentConfig",
    "FrameworkControllerConfig",
    "KubeflowConfig",
    "KubernetesConfig",
    "ListedTunerConfig",
    "LocalConfig",
    "NfsConfig",
    "ObjectiveConfig",
    "OpenpaiConfig",
    "PoolConfig",
    "RayConfig",
    "RemoteConfig",
    "RemoteMachineConfig",
    "SharedStorageConfig",
    "SlurmConfig",
    "TrainingServiceConfig",
]

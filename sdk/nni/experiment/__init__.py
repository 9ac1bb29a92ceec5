"""Experiments from Python: configure, run, watch, resume and view them.

Examples:
    >>> from nni.experiment import Experiment
    >>> experiment = Experiment("local")
    >>> experiment.config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    >>> experiment.config.trial_command = "python3 trial.py"
    >>> experiment.config.trial_concurrency = 2
    >>> experiment.config.max_trial_number = 10
    >>> experiment.config.tuner.name = "TPE"
    >>> experiment.config.validate()

    `experiment.run(8080)` then runs it and shows its progress.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from nni.experiment.environment import quiet_grpc

if TYPE_CHECKING:
    from nni.experiment.config import (
        AdlConfig,
        AlgorithmConfig,
        AmlConfig,
        AzureBlobConfig,
        CustomAlgorithmConfig,
        DlcConfig,
        ExperimentConfig,
        FrameworkControllerConfig,
        KubeflowConfig,
        KubernetesConfig,
        LocalConfig,
        NfsConfig,
        OpenpaiConfig,
        PoolConfig,
        RayConfig,
        RemoteConfig,
        RemoteMachineConfig,
        SlurmConfig,
    )
    from nni.experiment.experiment import Experiment
    from nni.experiment.records import (
        TrialHyperParameters,
        TrialJob,
        TrialMetricData,
        TrialResult,
    )
    from nni.experiment.replay import ReplayDifference, ReplayResult
    from nni.experiment.run_mode import RunMode
    from nni.experiment.shared_study import SharedStudy

quiet_grpc()  # here, since every module of this package that imports gRPC comes after

_CONFIG: Final = "nni.experiment.config"
_EXPERIMENT: Final = "nni.experiment.experiment"
_RECORDS: Final = "nni.experiment.records"
_REPLAYING: Final = "nni.experiment.replay"

_HOMES: Final = {
    "AdlConfig": _CONFIG,
    "AlgorithmConfig": _CONFIG,
    "AmlConfig": _CONFIG,
    "AzureBlobConfig": _CONFIG,
    "CustomAlgorithmConfig": _CONFIG,
    "DlcConfig": _CONFIG,
    "Experiment": _EXPERIMENT,
    "ExperimentConfig": _CONFIG,
    "FrameworkControllerConfig": _CONFIG,
    "KubeflowConfig": _CONFIG,
    "KubernetesConfig": _CONFIG,
    "LocalConfig": _CONFIG,
    "NfsConfig": _CONFIG,
    "OpenpaiConfig": _CONFIG,
    "PoolConfig": _CONFIG,
    "RayConfig": _CONFIG,
    "RemoteConfig": _CONFIG,
    "RemoteMachineConfig": _CONFIG,
    "ReplayDifference": _REPLAYING,
    "ReplayResult": _REPLAYING,
    "RunMode": "nni.experiment.run_mode",
    "SharedStudy": "nni.experiment.shared_study",
    "SlurmConfig": _CONFIG,
    "TrialHyperParameters": _RECORDS,
    "TrialJob": _RECORDS,
    "TrialMetricData": _RECORDS,
    "TrialResult": _RECORDS,
}
"""Home of each public name; loaded at first use, since importing gRPC takes time."""

__all__ = [
    "AdlConfig",
    "AlgorithmConfig",
    "AmlConfig",
    "AzureBlobConfig",
    "CustomAlgorithmConfig",
    "DlcConfig",
    "Experiment",
    "ExperimentConfig",
    "FrameworkControllerConfig",
    "KubeflowConfig",
    "KubernetesConfig",
    "LocalConfig",
    "NfsConfig",
    "OpenpaiConfig",
    "PoolConfig",
    "RayConfig",
    "RemoteConfig",
    "RemoteMachineConfig",
    "ReplayDifference",
    "ReplayResult",
    "RunMode",
    "SharedStudy",
    "SlurmConfig",
    "TrialHyperParameters",
    "TrialJob",
    "TrialMetricData",
    "TrialResult",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - classes of several kinds
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """Return the names of all exports and of what the module has loaded, sorted."""
    return sorted({*globals(), *__all__})

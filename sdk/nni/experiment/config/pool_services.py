"""Section of experiments that use a pool of the installation."""

from __future__ import annotations

from typing import Literal

from nni.experiment.config.base import Text
from nni.experiment.config.training_service_base import TrainingServiceConfig
from nni.experiment.errors import Problem


class PoolConfig(TrainingServiceConfig):
    """Configuration of an experiment that uses a pool of the installation.

    Examples:
        >>> from nni.experiment import ExperimentConfig, PoolConfig
        >>> ExperimentConfig(training_service=PoolConfig(name="gpus")).training_service.platform
        'pool'
    """

    platform: Literal["pool"] = "pool"
    """Name of the platform."""
    name: Text = ""
    """Name of the pool, as in its file."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return a problem if the name is none for a pool; the pool need not exist."""
        from nni_wire.pools import broken_name_rule

        _ = trial_gpu_number
        broken = broken_name_rule(self.name)
        return [Problem(f"{field}.name", broken, self.name)] if broken else []

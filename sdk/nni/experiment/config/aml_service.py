"""Configuration of the platform `aml`."""

from __future__ import annotations

from typing import Literal

from pydantic.alias_generators import to_camel

from nni.experiment.config.base import Flag, PositiveInteger, Text
from nni.experiment.config.training_service_base import JobPoolConfig
from nni.experiment.errors import Problem

_REQUIRED = ("subscription_id", "resource_group", "workspace_name", "compute_target")


class AmlConfig(JobPoolConfig):
    """Configuration of a workspace of Azure Machine Learning, whose jobs run agents.

    Examples:
        >>> from nni.experiment import AmlConfig
        >>> AmlConfig(workspace_name="tuning", compute_target="gpus").to_dict()["computeTarget"]
        'gpus'
    """

    platform: Literal["aml"] = "aml"
    """Name of the platform."""
    subscription_id: Text | None = None
    """Id of the Azure subscription; required."""
    resource_group: Text | None = None
    """Resource group of the workspace; required."""
    workspace_name: Text | None = None
    """Name of the workspace; required."""
    compute_target: Text | None = None
    """Name of the compute cluster; required."""
    docker_image: Text | None = None
    """Image with NNI's trial-runner; not given: the trial-runner of this version."""
    max_trial_number_per_gpu: PositiveInteger = 1
    """Trials that may share one GPU."""
    use_active_gpu: Flag = False
    """True if trials may use GPUs that other processes occupy."""
    endpoint: Text | None = None
    """Address of Azure Resource Manager; not given: that of the public cloud."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return the problems of the agents' limits, and of fields that are missing."""
        problems = super().problems(field, trial_gpu_number)
        problems += [
            Problem(f"{field}.{to_camel(name)}", "must be given")
            for name in _REQUIRED
            if not getattr(self, name)
        ]
        return problems

"""Configuration of the platform `dlc`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from nni.experiment.config.base import AbsolutePath, PositiveInteger, Text
from nni.experiment.config.training_service_base import JobPoolConfig
from nni.experiment.errors import Problem

_REQUIRED = ("image", "ecs_spec", "region", "nas_data_source_id", "access_key_id")


class DlcConfig(JobPoolConfig):
    """Configuration of PAI-DLC, the training service of Alibaba Cloud.

    Examples:
        >>> from nni.experiment import DlcConfig
        >>> DlcConfig(job_type="PyTorchJob", pod_count=1, region="cn-hangzhou").job_type
        'PyTorchJob'
    """

    platform: Literal["dlc"] = "dlc"
    """Name of the platform."""
    type: Text = "Worker"
    """Role of the pods in the job."""
    image: Text | None = None
    """Docker image with NNI's trial-runner and the packages of the trials; required."""
    job_type: Literal["TFJob", "PyTorchJob"] = "TFJob"
    """Kind of the job."""
    pod_count: PositiveInteger | None = None
    """Pods of a job, 1: a pod is an agent."""
    ecs_spec: Text | None = None
    """Instance type of a pod; required."""
    region: Text | None = None
    """Region of the cloud; required."""
    nas_data_source_id: Text | None = None
    """Id of the data source of the NAS that this machine and the containers mount; required."""
    access_key_id: Text | None = None
    """Id of the access key; required."""
    access_key_secret: Text | None = Field(default=None, repr=False)
    """Secret of the access key; required."""
    workspace_id: Text | None = None
    """Workspace of PAI; not given: the default one."""
    endpoint: Text | None = None
    """Address of the API, such as that of a VPC; not given: the public one of the region."""
    local_storage_mount_point: AbsolutePath = Path("/home/admin/workspace/")
    """Folder at which this machine mounts the NAS."""
    container_storage_mount_point: Text = "/root/data/"
    """Folder at which containers mount the NAS."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return problems of the agents' limits, of missing fields, and of several pods."""
        problems = super().problems(field, trial_gpu_number)
        problems += [
            Problem(f"{field}.{to_camel(name)}", "must be given")
            for name in _REQUIRED
            if not getattr(self, name)
        ]
        if (self.pod_count or 1) > 1:
            rule = "must be 1: trials over several pods are not supported"
            remedy = "use maxAgents for more agents"
            problems.append(Problem(f"{field}.podCount", rule, self.pod_count, remedy))
        return problems

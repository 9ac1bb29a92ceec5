"""Configuration of the platform `ray`."""

from __future__ import annotations

import math
from typing import Any, Literal

from nni.experiment.config.base import Amount, Text
from nni.experiment.config.training_service_base import AgentPoolConfig, PollInterval, Positive
from nni.experiment.errors import Problem


class RayConfig(AgentPoolConfig):
    """Configuration of an existing Ray cluster, whose actors run agents for several trials each.

    Examples:
        >>> from nni.experiment import RayConfig
        >>> service = RayConfig(num_cpus=4, num_gpus=1, max_agents=8)
        >>> service.to_dict()["numGpus"]
        1.0
    """

    platform: Literal["ray"] = "ray"
    """Name of the platform."""
    address: Text = "auto"
    """`auto`: the cluster whose node this machine is; or `host:port` of its head."""
    namespace: Text = "nni"
    """Namespace of the actors."""
    num_cpus: Amount | None = None
    """CPUs of an agent; not given: one for each of its slots."""
    num_gpus: Amount | None = None
    """GPUs of an agent; not given: as many as its trials ask for."""
    resources: dict[str, Positive] | None = None
    """Custom resources of an agent: `{special: 1}`."""
    memory: Text | None = None
    """Memory that Ray reserves for an agent: `16G`."""
    runtime_env: dict[str, Any] | None = None
    """Ray's `runtime_env` of the actor, in which agent and trials run."""
    scheduling_strategy: Literal["DEFAULT", "SPREAD"] | None = None
    """How Ray chooses nodes; not given: its default."""
    placement_group: Text | None = None
    """Name of an existing placement group of the namespace, whose bundles agents use."""
    setup_lines: list[Text] | None = None
    """Lines of bash that run before the trials: `module load cuda`."""
    python_path: Text | None = None
    """Put first on the PATH of trials."""
    home: Text | None = None
    """Folder of NNI on the nodes; not given: `~/.nni`."""
    poll_interval_seconds: PollInterval | None = None
    """Time between two looks at the agents while one is pending; not given: 2."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return problems of a client's address, two ways to choose nodes, and too few GPUs."""
        problems = super().problems(field, trial_gpu_number)
        if "://" in self.address:
            rule = "must be auto, or host:port of the head"
            remedy = "run NNI's services on a machine of the cluster, and give auto"
            problems.append(Problem(f"{field}.address", rule, self.address, remedy))
        if self.scheduling_strategy is not None and self.placement_group is not None:
            rule = "must not be given with placementGroup"
            name = f"{field}.schedulingStrategy"
            problems.append(Problem(name, rule, self.scheduling_strategy))
        # A trial that asks for one GPU gets the one of which its agent has a part.
        if self.num_gpus is not None and (trial_gpu_number or 0) > math.ceil(self.num_gpus):
            rule = "must be >= trialGpuNumber: trials run within an agent"
            problems.append(Problem(f"{field}.numGpus", rule, self.num_gpus))
        return problems

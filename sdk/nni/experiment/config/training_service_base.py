"""Base classes of the configurations of platforms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field

from nni.experiment.config.base import (
    ConfigModel,
    Count,
    DurationText,
    Flag,
    PositiveInteger,
    Text,
)
from nni.experiment.errors import Problem

Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
"""Finite number above 0."""
PollInterval = Annotated[float, Field(strict=True, ge=0.1, allow_inf_nan=False)]
"""Seconds between two looks at a platform."""
SHARED_LIMITS = ("maxAgentTime", "maxCost", "costPerAgentHour")
"""Limits that hold for all platforms of an experiment together."""


class TrainingServiceConfig(ConfigModel):
    """Base class of the configurations of one platform each."""

    platform: Text = ""
    """Name of the platform."""

    def sent_fields(self) -> dict[str, Any]:
        """Return the fields that the services get; by default all that are given.

        Returns:
            Values by camelCase name, see `to_dict`.
        """
        return self.to_dict()

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return which rules of its platform this section breaks; by default none.

        Args:
            field: path of the section, e.g. `trainingService`.
            trial_gpu_number: GPUs of one trial; `None` if not given.

        Returns:
            One problem per broken rule; empty if the section is valid.
        """
        _ = field, trial_gpu_number
        return []


class AgentPoolConfig(TrainingServiceConfig):
    """Base of platforms whose agents come and go with the demand."""

    reuse_mode: Flag = True
    """True if one job of the platform runs several trials in succession."""
    slots: PositiveInteger | None = None
    """Trials at once of one agent; not given: `trialConcurrency` is shared out evenly among
    machines that are listed, and 1 elsewhere."""
    min_agents: Count | None = None
    """Agents that stay even if no trial waits; not given: 0."""
    max_agents: PositiveInteger | None = None
    """Most agents at once; not given: as many as the platform has."""
    idle_time: DurationText | None = None
    """Time after which an agent without trials ends; not given: `60s`."""
    max_agent_time: DurationText | None = None
    """Time of all agents of the experiment together, after which none is started and none takes
    another trial; not given: no limit."""
    max_cost: Positive | None = None
    """Most that all agents of the experiment together may cost; needs `costPerAgentHour`."""
    cost_per_agent_hour: Positive | None = None
    """Price of one agent for an hour, in the currency of `maxCost`."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return a problem if fewer agents are allowed than shall stay, or a price is missing."""
        _ = trial_gpu_number
        problems = []
        if self.max_agents is not None and (self.min_agents or 0) > self.max_agents:
            problems.append(Problem(f"{field}.maxAgents", "must be >= minAgents", self.max_agents))
        if self.max_cost is not None and self.cost_per_agent_hour is None:
            problems.append(Problem(f"{field}.costPerAgentHour", "must be given with maxCost"))
        return problems


class ImagePoolConfig(AgentPoolConfig):
    """Base of platforms whose agents run in containers of an image."""

    python: Text | None = None
    """Interpreter of the agent in the image; not given: `python3`."""
    python_path: Text | None = None
    """Put first on the trial's PATH."""
    setup_lines: list[Text] | None = None
    """Lines of bash that run before the trials."""


class JobPoolConfig(ImagePoolConfig):
    """Base of platforms whose agents are jobs in containers, which NNI polls."""

    poll_interval_seconds: PollInterval | None = None
    """Time between two looks at the jobs; not given: 10."""


def differing_limits(services: Sequence[TrainingServiceConfig]) -> Iterator[Problem]:
    """Yield a problem for each limit of all platforms together that sections give differently.

    Args:
        services: the sections of one experiment or pool.
    """
    sections = [service.to_dict() for service in services]
    for name in SHARED_LIMITS:
        values = {section[name]: index for index, section in enumerate(sections) if name in section}
        if len(values) > 1:
            value, index = list(values.items())[-1]
            rule = "must be the same in all sections that have it: it limits all of them together"
            yield Problem(f"trainingService[{index}].{name}", rule, value)

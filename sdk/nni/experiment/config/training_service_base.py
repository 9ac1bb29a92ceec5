"""Base classes of the configurations of platforms."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PositiveInt

from nni.experiment.config.base import ConfigModel, DurationText, Flag, Integer, Text
from nni.experiment.errors import Problem


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
    slots: PositiveInt | None = None
    """Trials at once of one agent; not given: `trialConcurrency` is shared out evenly among
    machines that are listed, and 1 elsewhere."""
    min_agents: Annotated[Integer, Field(ge=0)] | None = None
    """Agents that stay even if no trial waits; not given: 0."""
    max_agents: PositiveInt | None = None
    """Most agents at once; not given: as many as the platform has."""
    idle_time: DurationText | None = None
    """Time after which an agent without trials ends; not given: `60s`."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return a problem if fewer agents are allowed than shall stay."""
        _ = trial_gpu_number
        if self.max_agents is not None and (self.min_agents or 0) > self.max_agents:
            return [Problem(f"{field}.maxAgents", "must be >= minAgents", self.max_agents)]
        return []

"""File that defines a pool of the installation.

The limits of a pool stand once for all its platforms; where one is left out, it follows from the
sections of the platforms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from nni.experiment.config.base import (
    ConfigModel,
    Count,
    DurationText,
    PositiveInteger,
    Text,
    paths_relative_to,
)
from nni.experiment.config.training_service_base import (
    Positive,
    TrainingServiceConfig,
    differing_limits,
)
from nni.experiment.config.training_services import TrainingServices
from nni.experiment.config.yaml_file import read_yaml
from nni.experiment.errors import ConfigError, Problem
from nni_wire.pools import POOL_PLATFORM, broken_name_rule


class PoolFile(ConfigModel):
    """Definition of a pool of the installation, the file of `nnictl pool create`.

    Examples:
        >>> from nni.experiment import LocalConfig
        >>> pool = PoolFile(name="gpus", training_service=LocalConfig(), max_agents=4)
        >>> pool.problems()
        []
    """

    name: Text
    """Lower-case letters, digits and `-` within; not `local`, and not starting with `exp-`."""
    training_service: TrainingServices = None
    """Section of one platform or a list of them, as in an experiment's configuration; not given:
    agents join by hand."""
    slots: PositiveInteger | None = None
    """Trials at once of one agent, for platforms whose section does not say."""
    min_agents: Count | None = None
    """Agents that stay even if no trial waits; not given: the sum of the platforms' sections."""
    max_agents: PositiveInteger | None = None
    """Most agents at once; not given: the sum of the platforms' sections."""
    idle_time: DurationText | None = None
    """Time after which an agent without trials ends; not given: `60s`."""
    max_agent_time: DurationText | None = None
    """Time of all agents together, after which the pool takes no more trials; not given: that of
    the platforms' sections, else none."""
    max_cost: Positive | None = None
    """Most that all agents together may cost; needs `costPerAgentHour`; not given: as above."""
    cost_per_agent_hour: Positive | None = None
    """Price of one agent for an hour, in the currency of `maxCost`."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the definition in a YAML file; ConfigError unless it keeps all rules.

        Args:
            path: the file; relative paths in it count from its folder.

        Raises:
            ConfigError: the file cannot be read, is no YAML, or breaks a rule.
        """
        file = Path(path).expanduser()
        document: Any = read_yaml(file, "FILE")
        try:
            with paths_relative_to(file.resolve().parent):
                return cls._checked(document)
        except ConfigError as error:
            raise error.within(str(path)) from error

    @classmethod
    def _checked(cls, document: Any) -> Self:  # noqa: ANN401 - any YAML document
        """Convert a document to a definition; raise ConfigError if it breaks a rule.

        Raises:
            ConfigError: it breaks a rule.
        """
        if not isinstance(document, dict):
            raise ConfigError([Problem("", "must be a mapping such as {name: gpus}")])
        found = cls(**document)
        problems = found.problems()
        if problems:
            raise ConfigError(problems)
        return found

    def platforms(self) -> list[TrainingServiceConfig]:
        """Return the sections of the platforms as a list; empty if none is given."""
        services = self.training_service
        if services is None:
            return []
        return list(services) if isinstance(services, list) else [services]

    def problems(self) -> list[Problem]:
        """Return broken rules of name, platforms and limits; empty if the definition is valid."""
        broken = broken_name_rule(self.name)
        problems = [Problem("name", broken, self.name)] if broken else []
        several = isinstance(self.training_service, list)
        for index, section in enumerate(self.platforms()):
            field = f"trainingService[{index}]" if several else "trainingService"
            if section.platform == POOL_PLATFORM:
                rule = "must be the platform of agents, not another pool"
                problems.append(Problem(f"{field}.platform", rule, section.platform))
            problems += section.problems(field, None)
        problems += differing_limits(self.platforms())
        if self.max_agents is not None and (self.min_agents or 0) > self.max_agents:
            problems.append(Problem("maxAgents", "must be >= minAgents", self.max_agents))
        if self.max_cost is not None and self.cost_per_agent_hour is None:
            problems.append(Problem("costPerAgentHour", "must be given with maxCost"))
        return problems

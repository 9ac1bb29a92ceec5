"""Sections for initial configurations, warm start, duplicates and stopping rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from nni.experiment.config.base import ConfigModel, Integer, Text
from nni.experiment.errors import Problem


class StoppingConfig(ConfigModel):
    """Stopping rules of a search; any of the given limits ends it."""

    no_improvement: Annotated[Integer, Field(ge=1)] | None = None
    """Results that must have come since the best one."""
    target: float | None = None
    """Value of the objective that is good enough."""
    regret_bound: Annotated[float, Field(gt=0)] | None = None
    """Gain, in the unit of the objective, below which it is not worth while to go on."""


class SearchConfig(ConfigModel):
    """Initial configurations, warm start, duplicates and stopping rules; not for advisors."""

    duplicates: Literal["replicate", "resample", "reuse"] = "replicate"
    """Treatment of a proposal that was evaluated or runs: it is run again, replaced by another
    one, or the tuner receives its known result instead."""
    enqueue: list[dict[str, Any]] = Field(default_factory=list)
    """Configurations to try before any of the tuner's."""
    warm_start_from: list[Text] = Field(default_factory=list)
    """Ids of earlier experiments, or files of exported results, that the tuner learns first."""
    stop: StoppingConfig = Field(default_factory=StoppingConfig)

    def experiments(self) -> list[str]:
        """Return the ids among `warm_start_from`."""
        return [item for item in self.warm_start_from if not is_file(item)]

    def samples(self) -> list[dict[str, Any]]:
        """Return the samples in the files of `warm_start_from`; raise for unreadable ones.

        Raises:
            ValueError: a file holds something else.
            OSError: a file cannot be read.
        """
        from nni.hpo.search.earlier_results import samples_of

        files = [item for item in self.warm_start_from if is_file(item)]
        return [sample for item in files for sample in samples_of(item)]

    def problems(self, search_space: object) -> Iterator[Problem]:
        """Yield queued configurations that break a constraint, and unreadable warm starts.

        Args:
            search_space: of the experiment; None if it is not known yet.
        """
        from nni.hpo.space.feasibility import broken_constraints

        broken = broken_constraints(search_space, self.enqueue)
        for number, (configuration, constraint) in enumerate(
            zip(self.enqueue, broken, strict=True)
        ):
            if constraint:
                rule = f"must keep the constraint {constraint} of the search space"
                yield Problem(f"search.enqueue[{number}]", rule, configuration)
        try:
            self.samples()
        except (OSError, ValueError) as error:
            yield Problem("search.warmStartFrom", str(error))


def is_file(item: str) -> bool:
    """Return True if a warm-start source is the path of a file, not an experiment id."""
    return "/" in item or item.endswith(".json") or Path(item).is_file()

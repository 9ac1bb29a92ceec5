"""Sections for initial configurations, warm start, duplicates and stopping rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    warm_start_by: Literal["value", "rank"] = "value"
    """Use of the results of `warm_start_from`: as results of the same objective, or, of related
    tasks on other scales, by their ranks within each experiment."""
    stop: StoppingConfig = Field(default_factory=StoppingConfig)

    def with_related(self, sources: Sequence[str]) -> SearchConfig:
        """Return a section that also learns the results of related tasks, by rank.

        Args:
            sources: ids of experiments, or files of exported results.

        Raises:
            ValueError: the section has a warm start by value.
        """
        if self.warm_start_from and self.warm_start_by != "rank":
            raise ValueError(
                "search.warmStartFrom of the configuration enters by value, --warm-start by rank; "
                "add warmStartBy: rank to the section, or leave one of them out"
            )
        both = [*self.warm_start_from, *sources]
        return self.model_copy(update={"warm_start_from": both, "warm_start_by": "rank"})

    def experiments(self) -> list[str]:
        """Return the items of `warm_start_from` that are experiment ids, not files."""
        return [item for item in self.warm_start_from if not is_file(item)]

    def samples(self) -> list[list[dict[str, Any]]]:
        """Return the samples of each file of `warm_start_from`; raise for unreadable ones.

        Raises:
            ValueError: a file holds something else.
            OSError: a file cannot be read.
        """
        from nni.hpo.search.earlier_results import samples_of

        files = [item for item in self.warm_start_from if is_file(item)]
        return [list(samples_of(item)) for item in files]

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

"""Configuration of several tuners that share the trials of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field

from nni.experiment.config.algorithm import AlgorithmConfig
from nni.experiment.config.base import ConfigModel, Text
from nni.experiment.errors import Problem
from nni.hpo.registry.named_tuners import MODE, named_tuners

PORTFOLIO: Final = "Portfolio"
"""Name of the tuner that shares the trials."""

TunerPolicy: TypeAlias = Literal["equal", "bandit"]


class ListedTunerConfig(ConfigModel):
    """One of several tuners that share the trials of an experiment.

    Examples:
        >>> from nni.experiment import ExperimentConfig
        >>> config = ExperimentConfig(tuners=[{"name": "TPE"}, {"name": "Random"}])
        >>> config.tuners[0].to_dict()
        {'name': 'TPE', 'classArgs': {}}
    """

    name: Text
    """Built-in or registered name."""
    class_args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the constructor; `optimize_mode` is the same for all tuners."""
    label: Text | None = None
    """Name of its trials in comparisons; not given: `name`, with a number if it is taken."""

    def listed(self) -> dict[str, Any]:
        """Return the tuner as an item of the argument `tuners`, without its mode."""
        arguments = {key: value for key, value in self.class_args.items() if key != MODE}
        item: dict[str, Any] = {"name": self.name}
        if arguments:
            item["classArgs"] = arguments
        if self.label:
            item["label"] = self.label
        return item


def portfolio_of(
    tuners: Sequence[ListedTunerConfig], policy: TunerPolicy | None
) -> AlgorithmConfig:
    """Return the section of the one tuner that shares the trials among several.

    Args:
        tuners: at least one; their `optimize_mode` becomes the one of the whole.
        policy: None for the default.
    """
    arguments: dict[str, Any] = {"tuners": [one.listed() for one in tuners]}
    if policy is not None:
        arguments["policy"] = policy
    modes = _modes(tuners)
    if modes:
        arguments[MODE] = modes[0]
    return AlgorithmConfig(name=PORTFOLIO, class_args=arguments)


def problems_of_tuners(
    tuners: Sequence[ListedTunerConfig],
    policy: TunerPolicy | None,
    others: Sequence[str],
    *,
    objectives: bool,
) -> Iterator[Problem]:
    """Yield problems of `tuners`: beside another algorithm, malformed, or of different modes.

    Args:
        tuners: empty if they are not given.
        policy: None if it is not given.
        others: names of the sections `tuner` and `advisor` that are given as well.
        objectives: whether the experiment has objectives, which decide what is optimised.
    """
    if not tuners:
        if policy is not None:
            remedy = "list several tuners under tuners, or leave it out"
            yield Problem("tunerPolicy", "is only for several tuners", policy, remedy)
        return
    if others:
        rule = f"must not be given together with {' and '.join(others)}"
        yield Problem("tuners", rule, None, "keep one; a single tuner is written as tuner")
    try:
        named_tuners([one.listed() for one in tuners])
    except ValueError as error:
        field, _, rule = str(error).partition(" ")
        yield Problem(field, rule)
    modes = _modes(tuners)
    if not objectives and any(mode != modes[0] for mode in modes):
        rule = "must be the same for all tuners"
        yield Problem("tuners: optimize_mode", rule, modes, "give it to one of them, or to all")


def _modes(tuners: Sequence[ListedTunerConfig]) -> list[Any]:
    return [one.class_args[MODE] for one in tuners if MODE in one.class_args]

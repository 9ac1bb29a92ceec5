"""Checks of configurations and imported samples against an experiment's search space.

Only a built-in algorithm with the usual search space is known well enough: what a custom one, or
one with a form of its own such as `BatchTuner`, accepts is left to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nni.experiment.errors import ConfigError, Problem
from nni_wire.values import from_value

if TYPE_CHECKING:
    from nni.hpo.registry.entries import AlgorithmEntry
    from nni_proto.experiment.v1 import config_pb2

_METRIC: Final = "default"
_REASONS: Final = 5
"""Reasons that a report lists; more of them say nothing new."""


@dataclass(frozen=True, slots=True)
class SampleReport:
    """Samples that are sent to the algorithm, and why the others are not.

    Attributes:
        taken: samples as they are sent.
        refused: (number in the file, reason) of each other one, in their order.
    """

    taken: tuple[Mapping[str, Any], ...]
    refused: tuple[tuple[int, str], ...]

    def reasons(self) -> Iterator[str]:
        """Yield a line for each reason, the most frequent first, with the first sample's number."""
        counts = Counter(reason for _, reason in self.refused)
        first = {reason: number for number, reason in reversed(self.refused)}
        for reason, count in counts.most_common(_REASONS):
            where = f"sample {first[reason]}"
            yield f"{reason} ({where if count == 1 else f'{count} samples, the first: {where}'})"
        if len(counts) > _REASONS:
            yield f"and {len(counts) - _REASONS} other reasons"


def sort_samples(data: Sequence[object], config: config_pb2.ExperimentConfig) -> SampleReport:
    """Return which samples an experiment's algorithm can learn, and why not the others.

    Args:
        data: list of dicts with `parameter` and `value`, as `nnictl experiment export` writes it.
        config: of the experiment.
    """
    numbers = _built_in(config) is not None and not config.objectives
    rule = _rule_of(config)
    taken, refused = [], []
    for number, sample in enumerate(data, start=1):
        reason = _broken_sample(sample, needs_number=numbers)
        if not reason and isinstance(sample, Mapping):
            reason = rule(sample["parameter"])
        if reason:
            refused.append((number, reason))
        elif isinstance(sample, Mapping):
            taken.append(sample)
    return SampleReport(tuple(taken), tuple(refused))


def learns_samples(config: config_pb2.ExperimentConfig) -> bool:
    """Return whether an experiment's algorithm uses imported samples; True for a custom one."""
    entry = _built_in(config)
    return entry is None or entry.imports


def check_parameters(
    field: str, parameters: object, config: config_pb2.ExperimentConfig, remedy: str
) -> None:
    """Raise ConfigError if a configuration lies outside the search space of an experiment.

    Args:
        field: argument that the error names.
        parameters: the configuration.
        config: of the experiment.
        remedy: advice of the error.

    Raises:
        ConfigError: a parameter is missing, unknown or out of range, or a constraint is broken.
    """
    reason = broken_parameters(parameters, config)
    if reason:
        rule = f"must lie in the search space: {reason}"
        raise ConfigError([Problem(field, rule, None, remedy)])


def broken_parameters(parameters: object, config: config_pb2.ExperimentConfig) -> str:
    """Return why a configuration lies outside the search space; empty if inside, or unchecked.

    Args:
        parameters: the configuration; keys that the algorithm adds, such as `TRIAL_BUDGET`, are
            allowed.
        config: of the experiment.
    """
    return _rule_of(config)(parameters)


def _rule_of(config: config_pb2.ExperimentConfig) -> Callable[[object], str]:
    """Return a function of parameters to the text of a broken rule, "" if none or not checked."""
    from nni.hpo.space.parser import parse_space, place

    entry = _built_in(config)
    if entry is None or entry.space_check or entry.space_argument:
        return lambda _: ""
    try:
        space = parse_space(from_value(config.search_space))
    except ValueError:  # a form that the algorithm alone knows
        return lambda _: ""
    own = frozenset(entry.reserved)

    def reason_of(parameters: object) -> str:
        try:
            place(space, parameters, ignore=own)
        except ValueError as error:
            return str(error)
        return ""

    return reason_of


def _built_in(config: config_pb2.ExperimentConfig) -> AlgorithmEntry | None:
    """Return the entry of an experiment's tuner or advisor; None if it is not a built-in one."""
    from nni.hpo.registry.factory import find

    for kind, algorithm in (("advisor", config.advisor), ("tuner", config.tuner)):
        if not algorithm.name:
            continue
        try:
            entry = find("advisor" if kind == "advisor" else "tuner", algorithm.name)
        except ValueError:
            return None
        return entry if entry.source == "nni" else None
    return None


def _broken_sample(sample: object, *, needs_number: bool) -> str:
    if not isinstance(sample, Mapping) or "parameter" not in sample:
        return "a sample must be an object with 'parameter' and 'value'"
    value = sample.get("value")
    if value is None:
        return "'value' must be the sample's result, and is missing"
    if not needs_number:
        return ""
    number = value.get(_METRIC) if isinstance(value, Mapping) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        return "'value' must be a number, or an object with a number at 'default'"
    return ""

"""Sections of a configuration that name the tuner to which an experiment is handed over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from nni.experiment.config.algorithm import AlgorithmConfig, AlgorithmSection
from nni.experiment.config.base import ConfigModel, paths_relative_to
from nni.experiment.config.listed_tuners import (
    ListedTunerConfig,
    TunerPolicy,
    portfolio_of,
    problems_of_tuners,
)
from nni.experiment.config.yaml_file import read_json_or_yaml
from nni.experiment.errors import ConfigError, Problem


class _TunerSections(ConfigModel):
    """Parsed sections `tuner`, `tuners` and `tunerPolicy`; their combination is not checked."""

    tuner: AlgorithmSection = Field(default_factory=AlgorithmConfig)
    tuners: list[ListedTunerConfig] = Field(default_factory=list)
    tuner_policy: TunerPolicy | None = None


def replacement_tuner(value: str | Mapping[str, Any] | AlgorithmConfig) -> AlgorithmConfig:
    """Return the checked tuner section that a name, section or dict means; ConfigError if wrong.

    Args:
        value: name of a tuner; its section; or a dict with `tuner`, or with `tuners` and
            `tunerPolicy`, as in a configuration.

    Returns:
        The section, checked; several tuners are the tuner `Portfolio`.

    Raises:
        ConfigError: a field is unknown or wrong, or no tuner is named.

    Examples:
        >>> from nni.experiment.config.replacement_tuner import replacement_tuner
        >>> replacement_tuner({"tuner": {"name": "TPE"}}).name
        'TPE'
    """
    tuner = _section_of(value)
    problems = tuner.problems("tuner")
    if problems:
        raise ConfigError(problems)
    return tuner


def load_replacement_tuner(path: str | Path) -> AlgorithmConfig:
    """Read the tuner that takes over from a YAML or JSON file; relative paths start at its folder.

    Args:
        path: the file, see `replacement_tuner`.

    Returns:
        The section, checked.

    Raises:
        ConfigError: the file cannot be read, or names no valid tuner.
    """
    file = Path(path).expanduser()
    content = read_json_or_yaml(file, "--filename")
    try:
        with paths_relative_to(file.resolve().parent):
            return replacement_tuner(content)
    except ConfigError as error:
        raise error.within(str(path)) from error


def _section_of(value: object) -> AlgorithmConfig:
    if isinstance(value, str):
        return AlgorithmConfig(name=value)
    if isinstance(value, AlgorithmConfig):
        return value
    if not isinstance(value, Mapping):
        rule = "must be a name, or the section tuner of a configuration"
        raise ConfigError([Problem("tuner", rule, value)])
    if not {"tuner", "tuners"} & value.keys():
        return AlgorithmConfig(**value)
    sections = _TunerSections(**value)
    given = ["tuner"] if sections.tuner.is_given() else []
    problems = list(
        problems_of_tuners(sections.tuners, sections.tuner_policy, given, objectives=False)
    )
    if problems:
        raise ConfigError(problems)
    if sections.tuners:
        return portfolio_of(sections.tuners, sections.tuner_policy)
    return sections.tuner

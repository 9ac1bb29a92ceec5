"""Arguments of a shared study, its configuration, and the check of those who join it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import DEFAULT_METRIC, Objectives, objectives_of
from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value, to_value

LOST_RETRIES: Final = 2
"""Further attempts of a trial whose process was lost, with `retry_lost`: parameters that kill every
process must not be asked for ever."""
DEFAULT_TUNER: Final = "auto"
DEFAULT_MODE: Final = "minimize"
_NAME: Final = re.compile(r"[a-z0-9]{4,32}")
_SEEDS: Final = 2**31
_SHOWN_CHARACTERS: Final = 120
_MODES: Final = {
    "minimize": metric_pb2.OPTIMIZE_MODE_MINIMIZE,
    "maximize": metric_pb2.OPTIMIZE_MODE_MAXIMIZE,
}
_MODE_NAMES: Final = {number: name for name, number in _MODES.items()}


@dataclass(frozen=True, slots=True)
class StudyArguments:
    """Arguments that all processes of a shared study agree on; None: any, or not given."""

    search_space: JsonValue = None
    """In JSON."""
    tuner: str | None = None
    tuner_args: Mapping[str, JsonValue] | None = None
    optimize_mode: str | Mapping[str, str] | None = None
    seed: int | None = None
    retry_lost: bool | None = None

    def check(self) -> None:
        """Raise unless the tuner is a name, the mode known, and the other arguments are JSON.

        Raises:
            ValueError: a mode is unknown.
            TypeError: the tuner is an object, or a value is none of JSON.
        """
        if self.tuner is not None and not isinstance(self.tuner, str):
            raise TypeError(
                f"tuner must be the name of a tuner, got {type(self.tuner).__name__}: an object "
                "is part of one process; register its class with nnictl algo register"
            )
        if self.optimize_mode is not None:
            objectives_of(self.optimize_mode)
        for name in ("search_space", "tuner_args"):
            try:
                _canonical(getattr(self, name))
            except (TypeError, ValueError) as error:
                raise TypeError(f"{name} must be a JSON value: {error}") from error

    @property
    def objectives(self) -> Objectives:
        """Objectives of `optimize_mode`; minimise `default` if it is not given."""
        return objectives_of(self.optimize_mode or DEFAULT_MODE)


def check_name(name: object) -> None:
    """Raise ValueError unless a study can have a name; it is the id of its experiment.

    Raises:
        ValueError: it has other characters, or is too short or long.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name must be 4 to 32 of the characters a-z and 0-9, got {name!r:.80}")


def study_config(name: str, arguments: StudyArguments) -> config_pb2.ExperimentConfig:
    """Return the configuration of a new study; a missing seed is drawn.

    Args:
        name: of the study.
        arguments: of its creator, with a search space.
    """
    message = config_pb2.ExperimentConfig(
        experiment_name=name,
        search_space=to_value(arguments.search_space),
        callers=config_pb2.Callers(),
        seed=secrets.randbelow(_SEEDS) if arguments.seed is None else arguments.seed,
        max_trial_retries=LOST_RETRIES if arguments.retry_lost else 0,
        objectives=[
            metric_pb2.Objective(metric=item.metric, mode=_MODES[item.mode])
            for item in arguments.objectives.items
        ],
    )
    message.tuner.name = arguments.tuner or DEFAULT_TUNER
    if arguments.tuner_args:
        message.tuner.class_args.CopyFrom(to_value(dict(arguments.tuner_args)))
    return message


def arguments_of(name: str, config: config_pb2.ExperimentConfig) -> StudyArguments:
    """Return the arguments of a shared study from its configuration; ValueError if it is not one.

    Args:
        name: of the study.
        config: of the experiment with this name.

    Raises:
        ValueError: it is an experiment whose trials agents run.
    """
    if not config.HasField("callers"):
        raise ValueError(
            f"name must be that of a shared study, got {name!r}: agents run the trials of this "
            "experiment"
        )
    modes = {item.metric: _MODE_NAMES[item.mode] for item in config.objectives}
    tuner_args = from_value(config.tuner.class_args) if config.tuner.HasField("class_args") else {}
    return StudyArguments(
        search_space=from_value(config.search_space),
        tuner=config.tuner.name,
        tuner_args=tuner_args,
        optimize_mode=modes.get(DEFAULT_METRIC, modes) if len(modes) == 1 else modes,
        seed=config.seed,
        retry_lost=config.max_trial_retries > 0,
    )


def check_join(name: str, own: StudyArguments, study: StudyArguments) -> None:
    """Raise ValueError at the first argument that differs from the study's; None never does.

    Args:
        name: of the study.
        own: arguments of this process.
        study: arguments of the study.

    Raises:
        ValueError: names the argument and both values.
    """
    for field in fields(StudyArguments):
        wanted, found = getattr(own, field.name), getattr(study, field.name)
        if wanted is None:
            continue
        if field.name == "optimize_mode":  # one of `default` alone is written in two ways
            differs = own.objectives != study.objectives
        else:
            differs = _canonical(wanted) != _canonical(found)
        if differs:
            raise ValueError(
                f"{field.name} must be that of the study {name!r}, {_shown(found)}, "
                f"or left out, got {_shown(wanted)}"
            )


def _canonical(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return JSON text that is the same for equal values, whatever the order of their keys.

    Raises:
        TypeError: the value is none of JSON.
        ValueError: it holds itself.
    """
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return a mapping as a dict, or a number of numpy as Python's; TypeError for other values.

    Raises:
        TypeError: it is another value.
    """
    if isinstance(value, Mapping):
        return dict(value)
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _shown(value: object) -> str:
    return repr(value)[:_SHOWN_CHARACTERS]

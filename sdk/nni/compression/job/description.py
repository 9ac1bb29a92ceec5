"""Description of a compression job: its JSON, checked field by field, without torch."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

ScheduleName = Literal["agp", "linear"]

_REFERENCE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z", re.ASCII)
_CLASS_NAME: Final = re.compile(r"[A-Za-z]\w*\Z", re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z")
ALGORITHMS: Final = (
    "ADMMPruner",
    "ActivationAPoZRankPruner",
    "ActivationMeanRankPruner",
    "FPGMPruner",
    "L1NormPruner",
    "L2NormPruner",
    "LevelPruner",
    "MovementPruner",
    "SlimPruner",
    "TaylorFOWeightPruner",
    "TaylorPruner",
    "TransformerHeadPruner",
)
"""Pruners that a step can run; a description is checked without importing them. Others search by
themselves and take functions as arguments, which JSON cannot hold."""
_SCHEDULES: Final = ("agp", "linear")
_ITERATIONS_LIMIT: Final = 10_000


class JobError(ValueError):
    """The description of a job breaks a rule.

    Args:
        field: place of the value, such as `schedule.iterations`.
        problem: the rule, the value and the remedy.

    Attributes:
        field: see above.
        problem: see above.

    Examples:
        >>> raise JobError("seed", "must be an integer, got 'x'")
        Traceback (most recent call last):
        nni.compression.job.description.JobError: seed must be an integer, got 'x'
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Factory:
    """Function of the user's code that builds a model or an evaluator."""

    reference: str
    """`package.module:function`."""
    kwargs: Mapping[str, object]
    """Keyword arguments; JSON values."""


@dataclass(frozen=True, slots=True)
class SpeedupOptions:
    """Options of `ModelSpeedup` in the last step."""

    allow_norm_change: bool = False
    """See `ModelSpeedup`."""
    time_limit_s: float = 300.0
    """Time limit of planning in seconds, > 0."""


@dataclass(frozen=True, slots=True)
class JobDescription:
    """Checked description of a compression job; `of` reads it from JSON.

    Args:
        model: function that builds the model.
        evaluator: function that takes the model and returns an evaluator with an
            `evaluating_func`.
        config_list: entries as for a pruner; ratios are those after the last iteration.
        algorithm: name of a class in `nni.compression.pruning`, one of `ALGORITHMS`.
        arguments: its arguments beside model, configuration and evaluator.
        weights: SHA-256 of the file of safetensors `<SHA-256>.safetensors` in the code directory,
            with the parameters to start from; None: those of the factory.
        schedule: how the ratios grow; `agp`, `linear`; see
            `nni.compression.scheduling.growth`.
        iterations: number of pruning iterations, >= 1.
        max_steps: optimizer steps of fine-tuning after each iteration.
        max_epochs: epochs of fine-tuning after each iteration; none if both are None.
        speedup: options of a last step that removes what is masked; None for no such step.
        seed: seed of all random numbers, >= 0.
        digest: SHA-256 of the JSON in its canonical form, which tells jobs apart.

    Examples:
        >>> from nni.compression.job import JobDescription
        >>> job = JobDescription.of({
        ...     "model": {"factory": "net:make"},
        ...     "evaluator": {"factory": "net:make_evaluator"},
        ...     "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}],
        ...     "algorithm": {"name": "L1NormPruner"},
        ...     "schedule": {"name": "agp", "iterations": 3},
        ... })
        >>> job.iterations, job.seed
        (3, 0)
    """

    model: Factory
    evaluator: Factory
    config_list: tuple[Mapping[str, object], ...]
    algorithm: str
    arguments: Mapping[str, object]
    weights: str | None = None
    schedule: ScheduleName = "agp"
    iterations: int = 1
    max_steps: int | None = None
    max_epochs: int | None = None
    speedup: SpeedupOptions | None = None
    seed: int = 0
    digest: str = ""

    @classmethod
    def of(cls, fields: object) -> JobDescription:
        """Read a description from its JSON and check it.

        Args:
            fields: the decoded JSON: `model`, `evaluator`, `config_list` and `algorithm`, and if
                wanted `schedule`, `fine_tuning`, `speedup` and `seed`; not changed.

        Returns:
            The description.

        Raises:
            JobError: a field is missing, unknown or out of range.

        Examples:
            >>> from nni.compression.job import JobDescription
            >>> JobDescription.of({"modle": {}})
            Traceback (most recent call last):
            nni.compression.job.description.JobError: modle is no field of a job; did you mean ...
        """
        known = ("model", "evaluator", "config_list", "algorithm")
        optional = ("schedule", "fine_tuning", "speedup", "seed")
        given = _mapping(fields, "job", known, optional)
        model = _mapping(given["model"], "model", ("factory",), ("kwargs", "weights"))
        evaluator = _mapping(given["evaluator"], "evaluator", ("factory",), ("kwargs",))
        algorithm = _mapping(given["algorithm"], "algorithm", ("name",), ("arguments",))
        schedule = _mapping(given.get("schedule", {}), "schedule", (), ("name", "iterations"))
        tuning = _mapping(
            given.get("fine_tuning", {}), "fine_tuning", (), ("max_steps", "max_epochs")
        )
        return cls(
            model=_factory(model, "model"),
            evaluator=_factory(evaluator, "evaluator"),
            config_list=_config_list(given["config_list"]),
            algorithm=_algorithm(algorithm["name"]),
            arguments=_free(algorithm.get("arguments", {}), "algorithm.arguments"),
            weights=_weights(model.get("weights")),
            schedule=_schedule_name(schedule.get("name", "agp")),
            iterations=_number(
                schedule.get("iterations", 1), "schedule.iterations", 1, _ITERATIONS_LIMIT
            ),
            max_steps=_limit(tuning.get("max_steps"), "fine_tuning.max_steps"),
            max_epochs=_limit(tuning.get("max_epochs"), "fine_tuning.max_epochs"),
            speedup=_speedup(given.get("speedup", False)),
            seed=_number(given.get("seed", 0), "seed", 0, 2**63 - 1),
            digest=_digest(given),
        )


def _mapping(
    value: object, field: str, required: Sequence[str], optional: Collection[str]
) -> Mapping[str, object]:
    """Return a mapping whose keys are all known and complete; raise JobError for any other."""
    prefix = "" if field == "job" else f"{field}."
    given = _free(value, field)
    known = [*required, *optional]
    for key in given:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise JobError(f"{prefix}{key}", f"is no field of a job; {hint}")
    for key in required:
        if key not in given:
            raise JobError(f"{prefix}{key}", "is missing")
    return given


def _free(value: object, field: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise JobError(field, f"must be an object with named values, got {value!r}")
    return cast("Mapping[str, object]", value)


def _text(value: object, field: str, pattern: re.Pattern[str], rule: str) -> str:
    if not isinstance(value, str) or not pattern.match(value):
        raise JobError(field, f"must be {rule}, got {value!r}")
    return value


def _algorithm(value: object) -> str:
    name = _text(value, "algorithm.name", _CLASS_NAME, "the name of a pruner's class")
    if name not in ALGORITHMS:
        close = difflib.get_close_matches(name, ALGORITHMS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        known = ", ".join(ALGORITHMS)
        raise JobError("algorithm.name", f"must be one of {known}, got {name!r}{hint}")
    return name


def _number(value: object, field: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise JobError(field, f"must be an integer from {least} to {most}, got {value!r}")
    return value


def _limit(value: object, field: str) -> int | None:
    return None if value is None else _number(value, field, 1, 2**31 - 1)


def _factory(fields: Mapping[str, object], field: str) -> Factory:
    rule = "a function as 'package.module:function'"
    reference = _text(fields["factory"], f"{field}.factory", _REFERENCE, rule)
    return Factory(reference, _free(fields.get("kwargs", {}), f"{field}.kwargs"))


def _weights(value: object) -> str | None:
    if value is None:
        return None
    rule = "the SHA-256 of a file of safetensors, 64 hexadecimal digits in lower case"
    return _text(value, "model.weights", _SHA256, rule)


def _config_list(value: object) -> tuple[Mapping[str, object], ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise JobError("config_list", f"must be a list of one or more entries, got {value!r}")
    return tuple(_free(entry, f"config_list[{place}]") for place, entry in enumerate(value))


def _schedule_name(value: object) -> ScheduleName:
    if value not in {"agp", "linear"}:
        raise JobError("schedule.name", f"must be one of {', '.join(_SCHEDULES)}, got {value!r}")
    return value


def _speedup(value: object) -> SpeedupOptions | None:
    if isinstance(value, bool):
        return SpeedupOptions() if value else None
    options = _mapping(value, "speedup", (), ("allow_norm_change", "time_limit_s"))
    allow = options.get("allow_norm_change", False)
    if not isinstance(allow, bool):
        raise JobError("speedup.allow_norm_change", f"must be true or false, got {allow!r}")
    limit = options.get("time_limit_s", SpeedupOptions().time_limit_s)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise JobError("speedup.time_limit_s", f"must be a number above 0, got {limit!r}")
    return SpeedupOptions(allow, float(limit))


def _digest(fields: Mapping[str, object]) -> str:
    try:
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise JobError("job", f"must hold JSON values only: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()

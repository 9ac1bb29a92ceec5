"""Description of a compression job: its JSON, checked field by field, without torch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nni.compression.job.field_checks import (
    JobError,
    entries_of,
    fields_of,
    integer_of,
    limit_of,
    name_of,
    named_values,
    text_of,
)
from nni.compression.job.step_options import (
    ExportOptions,
    QuantizationOptions,
    SpeedupOptions,
    budget_of,
    export_of,
    quantization_of,
    speedup_of,
)
from nni.compression.pipeline.budget import Budget

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


@dataclass(frozen=True, slots=True)
class Factory:
    """Reference `module:function` to the user's factory of a model or evaluator, and arguments."""

    reference: str
    """`package.module:function`."""
    kwargs: Mapping[str, object]
    """Keyword arguments; JSON values."""


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
        speedup: options of a step that removes what is masked; None for no such step.
        quantization: options of a step that quantizes the model; None for no such step.
        export: options of a last step that writes the model in ONNX; None for no such step.
        budget: limits of the result; None for none.
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
    quantization: QuantizationOptions | None = None
    export: ExportOptions | None = None
    budget: Budget | None = None
    seed: int = 0
    digest: str = ""

    @classmethod
    def of(cls, fields: object) -> JobDescription:
        """Parse and check a description from its JSON; raise JobError that names the field.

        Args:
            fields: the decoded JSON: `model`, `evaluator`, `config_list` and `algorithm`, and if
                wanted `schedule`, `fine_tuning`, `speedup`, `quantization`, `export`, `budget` and
                `seed`; not changed.

        Returns:
            The description.

        Raises:
            JobError: a field is missing, unknown or out of range.

        Examples:
            >>> from nni.compression.job import JobDescription
            >>> JobDescription.of({"modle": {}})
            Traceback (most recent call last):
            nni.compression.job.field_checks.JobError: modle is no field of a job; did you mean ...
        """
        known = ("model", "evaluator", "config_list", "algorithm")
        optional = (
            *("schedule", "fine_tuning", "speedup", "quantization", "export", "budget"),
            "seed",
        )
        given = fields_of(fields, "job", known, optional)
        model = fields_of(given["model"], "model", ("factory",), ("kwargs", "weights"))
        evaluator = fields_of(given["evaluator"], "evaluator", ("factory",), ("kwargs",))
        algorithm = fields_of(given["algorithm"], "algorithm", ("name",), ("arguments",))
        schedule = fields_of(given.get("schedule", {}), "schedule", (), ("name", "iterations"))
        tuning = fields_of(
            given.get("fine_tuning", {}), "fine_tuning", (), ("max_steps", "max_epochs")
        )
        speedup = speedup_of(given.get("speedup", False))
        export = export_of(given.get("export", False))
        return cls(
            model=_factory(model, "model"),
            evaluator=_factory(evaluator, "evaluator"),
            config_list=entries_of(given["config_list"], "config_list"),
            algorithm=_algorithm(algorithm["name"]),
            arguments=named_values(algorithm.get("arguments", {}), "algorithm.arguments"),
            weights=_weights(model.get("weights")),
            schedule=_schedule_name(schedule.get("name", "agp")),
            iterations=integer_of(
                schedule.get("iterations", 1), "schedule.iterations", 1, _ITERATIONS_LIMIT
            ),
            max_steps=limit_of(tuning.get("max_steps"), "fine_tuning.max_steps"),
            max_epochs=limit_of(tuning.get("max_epochs"), "fine_tuning.max_epochs"),
            speedup=speedup,
            quantization=quantization_of(given.get("quantization", False)),
            export=export,
            budget=budget_of(
                given.get("budget"), speedup=speedup is not None, export=export is not None
            ),
            seed=integer_of(given.get("seed", 0), "seed", 0, 2**63 - 1),
            digest=_digest(given),
        )


def _algorithm(value: object) -> str:
    text_of(value, "algorithm.name", _CLASS_NAME, "the name of a pruner's class")
    return name_of(value, "algorithm.name", ALGORITHMS)


def _factory(fields: Mapping[str, object], field: str) -> Factory:
    rule = "a function as 'package.module:function'"
    reference = text_of(fields["factory"], f"{field}.factory", _REFERENCE, rule)
    return Factory(reference, named_values(fields.get("kwargs", {}), f"{field}.kwargs"))


def _weights(value: object) -> str | None:
    if value is None:
        return None
    rule = "the SHA-256 of a file of safetensors, 64 hexadecimal digits in lower case"
    return text_of(value, "model.weights", _SHA256, rule)


def _schedule_name(value: object) -> ScheduleName:
    return "linear" if name_of(value, "schedule.name", _SCHEDULES) == "linear" else "agp"


def _digest(fields: Mapping[str, object]) -> str:
    try:
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise JobError("job", f"must hold JSON values only: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()

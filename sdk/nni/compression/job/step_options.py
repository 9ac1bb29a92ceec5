"""Options of the steps of a job that follow its pruning: checked JSON, without torch."""

from __future__ import annotations

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
)
from nni.compression.pipeline.budget import Budget

RuntimeName = Literal["onnxruntime", "openvino"]
RUNTIMES: Final[tuple[RuntimeName, ...]] = ("onnxruntime", "openvino")
"""Those of `nni.compression.quantization.presets`, which needs torch."""
TRAINING_QUANTIZERS: Final = ("LsqPlusQuantizer", "LsqQuantizer", "QATQuantizer")
QUANTIZERS: Final = (*TRAINING_QUANTIZERS, "PtqQuantizer")
"""Quantizers of which a calibration is all that an export needs."""
_SIZE_LIMITS: Final = ("parameters", "flops")
_FILE_LIMITS: Final = ("size_bytes", "latency_ms")
BUDGET_LIMITS: Final = ("metric", *_SIZE_LIMITS, *_FILE_LIMITS)
_MOST_THREADS: Final = 1024


@dataclass(frozen=True, slots=True)
class TuningLimits:
    """Limits of a training; the first one that is reached ends it."""

    max_steps: int | None
    """Optimizer steps."""
    max_epochs: int | None
    """Epochs."""


@dataclass(frozen=True, slots=True)
class SpeedupOptions:
    """Options of the speedup step: change of norms, time limit of planning, fine-tuning."""

    allow_norm_change: bool = False
    """See `ModelSpeedup`."""
    time_limit_s: float = 300.0
    """Time limit of planning in seconds, > 0."""
    fine_tuning: TuningLimits | None = None
    """Training of the smaller model, in a step of its own; None for no such step."""


@dataclass(frozen=True, slots=True)
class QuantizationOptions:
    """Options of the quantizing step: quantizer, arguments, entries, runtime, fine-tuning."""

    name: str = "PtqQuantizer"
    """One of `QUANTIZERS`."""
    arguments: Mapping[str, object] | None = None
    """Its arguments beside model, configuration and evaluator; None for none."""
    config_list: tuple[Mapping[str, object], ...] | None = None
    """Entries as for a quantizer; None: those of `presets.config_list_for` for the runtime."""
    runtime: RuntimeName = "onnxruntime"
    """Program that executes the exported model."""
    fine_tuning: TuningLimits | None = None
    """Training with rounded values; None for quantizers that train nothing."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of the step that writes ONNX: threads of onnxruntime while it is measured."""

    threads: int = 1
    """Threads of onnxruntime while the file is measured, >= 1."""


def speedup_of(value: object) -> SpeedupOptions | None:
    """Return the speedup's options; defaults for True, None for False; raise JobError if wrong."""
    if isinstance(value, bool):
        return SpeedupOptions() if value else None
    options = fields_of(value, "speedup", (), ("allow_norm_change", "time_limit_s", "fine_tuning"))
    allow = options.get("allow_norm_change", False)
    if not isinstance(allow, bool):
        raise JobError("speedup.allow_norm_change", f"must be true or false, got {allow!r}")
    limit = options.get("time_limit_s", SpeedupOptions().time_limit_s)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise JobError("speedup.time_limit_s", f"must be a number above 0, got {limit!r}")
    return SpeedupOptions(allow, float(limit), _training(options, "speedup.fine_tuning"))


def quantization_of(value: object) -> QuantizationOptions | None:
    """Return quantization options; defaults for True, None for False; raise JobError if wrong."""
    if isinstance(value, bool):
        return QuantizationOptions() if value else None
    known = ("name", "arguments", "config_list", "runtime", "fine_tuning")
    options = fields_of(value, "quantization", (), known)
    name = name_of(options.get("name", "PtqQuantizer"), "quantization.name", QUANTIZERS)
    fine_tuning = _training(options, "quantization.fine_tuning")
    if name in TRAINING_QUANTIZERS and fine_tuning is None:
        raise JobError("quantization.fine_tuning", f"is missing; {name} learns by training")
    if name not in TRAINING_QUANTIZERS and fine_tuning is not None:
        trained = ", ".join(TRAINING_QUANTIZERS)
        problem = f"must be left out for {name}, which trains nothing; name one of {trained}"
        raise JobError("quantization.fine_tuning", problem)
    entries = options.get("config_list")
    runtime = name_of(options.get("runtime", "onnxruntime"), "quantization.runtime", RUNTIMES)
    return QuantizationOptions(
        name=name,
        arguments=named_values(options.get("arguments", {}), "quantization.arguments"),
        config_list=None if entries is None else entries_of(entries, "quantization.config_list"),
        runtime="openvino" if runtime == "openvino" else "onnxruntime",
        fine_tuning=fine_tuning,
    )


def export_of(value: object) -> ExportOptions | None:
    """Return the export's options; defaults for True, None for False; raise JobError if wrong."""
    if isinstance(value, bool):
        return ExportOptions() if value else None
    options = fields_of(value, "export", (), ("threads",))
    return ExportOptions(integer_of(options.get("threads", 1), "export.threads", 1, _MOST_THREADS))


def budget_of(value: object, *, speedup: bool, export: bool) -> Budget | None:
    """Return a job's budget or None; raise JobError if a limit is wrong or lacks its step.

    Args:
        value: limits by name; None for no budget.
        speedup: whether the job removes what it masks.
        export: whether it writes a file in ONNX.

    Raises:
        JobError: a limit is unknown or out of range, or no step of the job can keep it.
    """
    if value is None:
        return None
    limits = fields_of(value, "budget", (), BUDGET_LIMITS)
    if not limits:
        raise JobError("budget", f"must have one or more of {', '.join(BUDGET_LIMITS)}")
    for name in limits:
        if name in _SIZE_LIMITS and not speedup:
            problem = "needs speedup: a masked model is as large as before; set speedup to true"
            raise JobError(f"budget.{name}", problem)
        if name in _FILE_LIMITS and not (speedup or export):
            problem = "needs speedup or export: no other step makes the model smaller or faster"
            raise JobError(f"budget.{name}", problem)
    try:
        return Budget(**limits)  # type: ignore[arg-type] # it checks their types
    except (TypeError, ValueError) as error:
        field, _, problem = str(error).partition(" ")
        raise JobError(field, problem) from error


def _training(options: Mapping[str, object], field: str) -> TuningLimits | None:
    value = options.get("fine_tuning")
    if value is None:
        return None
    limits = fields_of(value, field, (), ("max_steps", "max_epochs"))
    found = TuningLimits(
        limit_of(limits.get("max_steps"), f"{field}.max_steps"),
        limit_of(limits.get("max_epochs"), f"{field}.max_epochs"),
    )
    if found == TuningLimits(None, None):
        raise JobError(field, "must have max_steps or max_epochs; leave it out for no training")
    return found

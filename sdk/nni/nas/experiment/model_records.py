"""Completed models as plain values for a checkpoint, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nni.nas.space import ExecutableModelSpace, ModelStatus
from nni.nas.strategy.sample_codec import SampleCodec


def record_of(
    model: ExecutableModelSpace, codec: SampleCodec, status: ModelStatus | None = None
) -> dict[str, Any]:
    """Return a model's sample, status and metrics as a dict of plain values.

    Args:
        model: a frozen model.
        codec: of its space.
        status: its status; None for the present one.
    """
    return {
        "sample": codec.encode(model.sample or {}),
        "status": (status or model.status).value,
        "intermediates": list(model.metrics.intermediates),
        "final": model.metrics.final,
    }


def models_of(
    records: Sequence[Mapping[str, Any]], space: ExecutableModelSpace
) -> list[ExecutableModelSpace]:
    """Freeze the samples of records again; return the models with their metrics and status.

    Raises:
        ValueError: the space has changed.
    """
    codec = SampleCodec(space.simplify())
    models: list[ExecutableModelSpace] = []
    for record in records:
        model = space.freeze(codec.decode(record["sample"]))
        for metric in record["intermediates"]:
            model.metrics.add_intermediate(metric)
        if record["final"] is not None:
            model.metrics.final = record["final"]
        model.status = ModelStatus(record["status"])
        models.append(model)
    return models

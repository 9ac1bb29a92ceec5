"""Validation of jobs, called without a server."""

from __future__ import annotations

from typing import Any

import pytest

from nni_proto.compression.v1 import compression_service_pb2 as pb
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_compressor.servicers.compression_servicer import CompressionServicer
from tests.support.compression_job import job_of

CONTEXT: Any = None


async def validate(job: object) -> pb.ValidateJobResponse:
    request = pb.ValidateJobRequest(job=to_value(job))
    return await CompressionServicer().ValidateJob(request, CONTEXT)


async def test_valid_job_is_answered_with_its_steps() -> None:
    answer = await validate(job_of(2))

    assert [(step.number, step.kind) for step in answer.steps] == [
        (1, pb.STEP_KIND_PRUNE),
        (2, pb.STEP_KIND_PRUNE),
        (3, pb.STEP_KIND_SPEEDUP),
    ]


async def test_steps_after_the_speedup_have_kinds_of_their_own() -> None:
    speedup = {"fine_tuning": {"max_steps": 5}}

    answer = await validate({**job_of(1), "speedup": speedup, "quantization": True, "export": True})

    assert [step.kind for step in answer.steps][2:] == [
        pb.STEP_KIND_FINE_TUNE,
        pb.STEP_KIND_QUANTIZE,
        pb.STEP_KIND_EXPORT,
    ]


@pytest.mark.parametrize(
    ("job", "field"),
    [
        ({**job_of(), "seed": -1}, "job.seed"),
        ({**job_of(), "sead": 1}, "job.sead"),
        ({**job_of(), "budget": {"flops": -1}}, "job.budget.flops"),
        ([], "job"),
        ({**job_of(), "model": {"factory": "os;system"}}, "job.model.factory"),
    ],
)
async def test_refusal_names_the_field(job: object, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        await validate(job)

    assert refusal.value.field == field


async def test_job_in_the_byte_store_is_refused() -> None:
    request = pb.ValidateJobRequest()
    request.job.map_value.entries.add(key="model").value.blob_value.sha256 = "ab" * 32

    with pytest.raises(InvalidArgumentError, match="must be a JSON value in the request itself"):
        await CompressionServicer().ValidateJob(request, CONTEXT)

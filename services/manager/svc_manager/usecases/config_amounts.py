"""Limits on the number of values in the fields of a configuration.

The configuration is decoded, masked and copied for each view of its experiment, with loops over the
values of its options and arguments: so many values are allowed as hold the event loop for 20 ms.
Search space and samples are stored apart.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError
from svc_common.large_work import encoded, off_loop
from svc_common.rpc.message_parts import count_parts

FIELD_PARTS: Final = 40_000
"""Most parts of a field: 10,000 numbers in a map, 20,000 in a list."""
MASKED_BYTES: Final = 1_000_000
"""Most encoded bytes of a field that views look through for secrets: 25 ns each at worst."""
ENQUEUED_PARTS: Final = 400_000
"""Most parts of `search.enqueue`: 10,000 configurations of 9 numbers each."""
ITEMS_LIMIT: Final = 1_000
"""Most platforms, objectives, limits of results, and tags."""
_COUNTED: Final = ("training_services", "objectives", "constraints", "tags")
_MASKED: Final = frozenset({"training_services", "tuner", "assessor", "advisor"})
_STORED_APART: Final = frozenset({"search_space", "search"})


async def check_amounts(config: config_pb2.ExperimentConfig) -> None:
    """Raise InvalidArgumentError if a field of a configuration has too many values.

    Raises:
        InvalidArgumentError: it has; the error names the field.
    """
    for name in _COUNTED:
        count = len(getattr(config, name))
        if count > ITEMS_LIMIT:
            raise InvalidArgumentError(
                name, f"must have at most {ITEMS_LIMIT:,} items", count, "leave some out"
            )
    for field, value in config.ListFields():
        if field.name not in _STORED_APART and (field.message_type or field.is_repeated):
            await _check(field, value)
    enqueued = config_pb2.ExperimentConfig(
        search=config_pb2.SearchConfig(enqueue=config.search.enqueue)
    )
    await _check_parts(
        enqueued, "search.enqueue", ENQUEUED_PARTS, "add the others when it runs: TrialService"
    )


async def _check(field: FieldDescriptor, value: Any) -> None:  # noqa: ANN401 - a field of any type
    alone = config_pb2.ExperimentConfig()
    getattr(alone, field.name).MergeFrom(value)
    await _check_parts(alone, field.name, FIELD_PARTS, "read them from a file in the code")


async def check_tuner_amount(tuner: config_pb2.AlgorithmConfig) -> None:
    """Raise InvalidArgumentError if the arguments of a tuner have too many values.

    Raises:
        InvalidArgumentError: they have.
    """
    alone = config_pb2.ExperimentConfig(tuner=tuner)
    await _check_parts(alone, "tuner", FIELD_PARTS, "read them from a file in the code")


async def _check_parts(
    alone: config_pb2.ExperimentConfig, name: str, limit: int, remedy: str
) -> None:
    """Raise if a configuration with one field only has more parts than the limit, or bytes."""
    payload = await encoded(alone)
    if name in _MASKED and len(payload) > MASKED_BYTES:
        limit_text = f"must have at most {MASKED_BYTES:,} bytes"
        raise InvalidArgumentError(name, limit_text, f"{len(payload):,}", remedy)
    count = await off_loop(len(payload), count_parts, payload, alone.DESCRIPTOR, limit)
    if count > limit:
        raise InvalidArgumentError(
            name,
            f"must have at most {limit:,} parts (a number in a list is two, one in a map four)",
            f"more in {len(payload):,} bytes",
            remedy,
        )

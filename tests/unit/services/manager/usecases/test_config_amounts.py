"""Limits on the number of values in the fields of a configuration."""

from collections.abc import Callable

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.config_amounts import (
    ENQUEUED_PARTS,
    FIELD_PARTS,
    ITEMS_LIMIT,
    MASKED_BYTES,
    check_amounts,
    check_tuner_amount,
)

Config = config_pb2.ExperimentConfig
MANY = {"a": list(range(FIELD_PARTS // 2))}
ALMOST_AS_MANY = {"a": list(range(FIELD_PARTS // 2 - 20))}


def set_arguments(config: Config, data: object) -> None:
    config.tuner.class_args.CopyFrom(to_value(data))


def set_options(config: Config, data: object) -> None:
    config.training_services.add(platform="local").options.CopyFrom(to_value(data))


def set_job(config: Config, data: object) -> None:
    config.compression.job.CopyFrom(to_value(data))


def set_gpus(config: Config, data: object) -> None:
    assert isinstance(data, dict)
    config.tuner_gpu_indices.extend([1] * (2 * len(data["a"]) + 20))


@pytest.mark.parametrize(
    ("name", "fill"),
    [
        ("tuner", set_arguments),
        ("training_services", set_options),
        ("compression", set_job),
        ("tuner_gpu_indices", set_gpus),
    ],
)
async def test_field_with_too_many_values_is_refused_by_name(
    name: str, fill: Callable[[Config, object], None]
) -> None:
    accepted, refused = Config(), Config()
    fill(accepted, ALMOST_AS_MANY)
    fill(refused, MANY)

    await check_amounts(accepted)
    with pytest.raises(InvalidArgumentError, match=rf"{name} must have at most 40,000 parts"):
        await check_amounts(refused)


async def test_stored_values_may_be_many() -> None:
    config = Config()
    config.search_space.CopyFrom(to_value(MANY))
    config.search.known.CopyFrom(to_value(MANY))

    await check_amounts(config)


async def test_too_many_enqueued_values_are_refused() -> None:
    config = Config()
    numbers = to_value({str(number): number for number in range(100)})
    config.search.enqueue.extend([numbers] * (ENQUEUED_PARTS // 400))

    with pytest.raises(InvalidArgumentError, match=r"search\.enqueue must have at most 400,000"):
        await check_amounts(config)


@pytest.mark.parametrize("name", ["training_services", "objectives", "constraints"])
async def test_too_many_items_are_refused_by_name(name: str) -> None:
    config = Config()
    for _ in range(ITEMS_LIMIT + 1):
        getattr(config, name).add()

    with pytest.raises(InvalidArgumentError, match=rf"{name} must have at most 1,000 items"):
        await check_amounts(config)


async def test_too_many_tags_are_refused() -> None:
    config = Config(tags={str(number): "" for number in range(ITEMS_LIMIT + 1)})

    with pytest.raises(InvalidArgumentError, match=r"tags must have at most 1,000 items"):
        await check_amounts(config)


async def test_tuner_that_takes_over_has_as_few_arguments() -> None:
    config = Config()
    set_arguments(config, MANY)

    with pytest.raises(InvalidArgumentError, match=r"tuner must have at most 40,000 parts"):
        await check_tuner_amount(config.tuner)


@pytest.mark.parametrize(
    ("name", "fill"), [("tuner", set_arguments), ("training_services", set_options)]
)
@pytest.mark.parametrize("long_name", [False, True])
async def test_field_that_is_long_to_look_through_is_refused_by_name(
    name: str, fill: Callable[[Config, object], None], long_name: bool
) -> None:
    accepted, refused = Config(), Config()
    for config, length in ((accepted, MASKED_BYTES - 100), (refused, MASKED_BYTES)):
        text = "a_" * (length // 2)
        fill(config, {text: 1} if long_name else {"a": text})

    await check_amounts(accepted)
    with pytest.raises(InvalidArgumentError, match=rf"{name} must have at most 1,000,000 bytes"):
        await check_amounts(refused)


async def test_tuner_that_takes_over_has_as_short_arguments() -> None:
    config = Config()
    set_arguments(config, {"a": "://" * (MASKED_BYTES // 3)})

    with pytest.raises(InvalidArgumentError, match="tuner must have at most 1,000,000 bytes"):
        await check_tuner_amount(config.tuner)

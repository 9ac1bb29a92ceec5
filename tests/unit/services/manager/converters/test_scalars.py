import math

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.converters.scalars import numbers_of, settings_of


@pytest.mark.claim("platform", 26)
@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        (1, 1.0),
        (0.5, 0.5),
        (float("inf"), float("inf")),
        (10**30, 1e30),
        ({"default": 1, "loss": 2.5, "note": "x", "flag": True}, {"default": 1.0, "loss": 2.5}),
        ("a text", None),
        (True, None),
        (None, None),
        ([1, 2], None),
        (10**400, float("inf")),
    ],
)
def test_the_numbers_of_a_metric(value: object, numbers: object) -> None:
    assert numbers_of(to_value(value)) == numbers


def test_nan_stays_nan() -> None:
    number = numbers_of(to_value(float("nan")))

    assert isinstance(number, float)
    assert math.isnan(number)


@pytest.mark.parametrize(
    ("platforms", "pool"),
    [
        ([], "local"),
        (["local"], "local"),
        (["somewhere"], "exp-ab12cd34"),
        (["local", "somewhere"], "exp-ab12cd34"),
    ],
)
def test_experiment_with_a_platform_besides_local_has_a_pool_of_its_own(
    platforms: list[str], pool: str
) -> None:
    services = [config_pb2.TrainingServiceConfig(platform=platform) for platform in platforms]

    settings = settings_of(
        "ab12cd34", config_pb2.ExperimentConfig(training_services=services), resolved_mode=0
    )

    assert settings.pool == pool


def test_experiment_that_names_a_pool_uses_it() -> None:
    options = to_value({"name": "gpus"})
    service = config_pb2.TrainingServiceConfig(platform="pool", options=options)
    config = config_pb2.ExperimentConfig(training_services=[service])

    settings = settings_of("ab12cd34", config, resolved_mode=0)

    assert (settings.pool, settings.platforms) == ("gpus", ())


@pytest.mark.parametrize("options", [{}, {"name": "local"}, {"name": "exp-1"}])
def test_name_that_no_pool_can_have_is_refused(options: dict[str, object]) -> None:
    service = config_pb2.TrainingServiceConfig(platform="pool", options=to_value(options))

    with pytest.raises(InvalidArgumentError, match=r"trainingService\.name"):
        settings_of("a", config_pb2.ExperimentConfig(training_services=[service]), resolved_mode=0)

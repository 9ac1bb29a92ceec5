"""Checks of values in clients' requests, done once before use."""

from collections.abc import Mapping
from typing import Final

from google.protobuf.duration_pb2 import Duration

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import check_value
from svc_common.errors import InvalidArgumentError
from svc_manager.converters.scalars import to_ms

LONGEST_S: Final = 315_576_000_000
"""Maximum of a protobuf duration: 10,000 years."""
_NS_PER_S: Final = 1_000_000_000
ENVIRONMENT_LIMIT: Final = 10_000
"""Most variables of an environment: they are checked within 5 ms."""


def check_storable(value: value_pb2.Value, field: str) -> None:
    """Raise InvalidArgumentError unless the value survives a round trip through storage.

    Args:
        value: from the request.
        field: its name in the request.

    Raises:
        InvalidArgumentError: the value cannot be stored and read.
    """
    try:
        check_value(value)
    except ValueError as error:
        raise InvalidArgumentError(field, f"must be a readable value ({error})") from None


def check_config_values(config: config_pb2.ExperimentConfig) -> None:
    """Raise InvalidArgumentError unless a configuration's texts, durations and values are valid.

    Raises:
        InvalidArgumentError: one breaks its rule.
    """
    check_text(config.trial_command, "trial_command")
    for name in ("max_experiment_duration", "max_trial_duration"):
        length_ms(getattr(config, name), name)
    check_storable(config.search_space, "search_space")
    check_storable(config.model_graph, "model_graph")
    for name in ("tuner", "assessor", "advisor"):
        check_algorithm_values(getattr(config, name), name)
    for service in config.training_services:
        check_storable(service.options, "training_service.options")


def check_algorithm_values(algorithm: config_pb2.AlgorithmConfig, name: str) -> None:
    """Raise InvalidArgumentError unless an algorithm's texts and arguments can be stored.

    Args:
        algorithm: from the request.
        name: its field in the request.

    Raises:
        InvalidArgumentError: one cannot be stored and read.
    """
    check_storable(algorithm.class_args, f"{name}.class_args")
    check_text(algorithm.name, f"{name}.name")
    check_text(algorithm.custom.class_name, f"{name}.class_name")
    check_text(algorithm.custom.code_directory, f"{name}.code_directory")
    check_text(algorithm.server_address, f"{name}.server_address")


def environment_from(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a request; raise InvalidArgumentError if they are too many.

    Args:
        variables: by name.

    Raises:
        InvalidArgumentError: there are more than `ENVIRONMENT_LIMIT`.
    """
    if len(variables) > ENVIRONMENT_LIMIT:
        raise InvalidArgumentError(
            "environment",
            f"must have at most {ENVIRONMENT_LIMIT:,} variables",
            f"{len(variables):,}",
            "unset those that no trial needs",
        )
    return dict(variables)


def check_text(text: str, field: str) -> None:
    """Raise InvalidArgumentError if ``text`` holds NUL, which no argument or file name may.

    Raises:
        InvalidArgumentError: it holds the character NUL.
    """
    if "\0" in text:
        raise InvalidArgumentError(field, "must not hold the character NUL", text[:200])


def length_ms(duration: Duration, field: str) -> int:
    """Return a protobuf duration in ms; raise InvalidArgumentError if it is negative or too long.

    Raises:
        InvalidArgumentError: it is negative, or longer than a protobuf duration may be.
    """
    if not (0 <= duration.seconds <= LONGEST_S and 0 <= duration.nanos < _NS_PER_S):
        raise InvalidArgumentError(
            field, "must be 0 s to 10,000 years", f"{duration.seconds} s {duration.nanos} ns"
        )
    return to_ms(duration)


def check_environment(environment: Mapping[str, str]) -> None:
    """Raise InvalidArgumentError if a variable's name or value cannot be passed to a process.

    Raises:
        InvalidArgumentError: a name or a value is invalid; values are never shown, since they may
            be secrets.
    """
    for name, text in environment.items():
        if not name or "=" in name or "\0" in name:
            raise InvalidArgumentError(
                "environment", "must have names without '=' and NUL that are not empty", name[:80]
            )
        if "\0" in text:
            raise InvalidArgumentError(
                f"environment.{name[:80]}", "must not hold the character NUL"
            )

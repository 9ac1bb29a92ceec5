"""What clients send, checked once, before anything believes it."""

from collections.abc import Mapping
from typing import Final

from google.protobuf.duration_pb2 import Duration

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import check_value
from svc_common.errors import InvalidArgumentError
from svc_manager.converters.scalars import to_ms

LONGEST_S: Final = 315_576_000_000
"""What a protobuf duration holds: 10,000 years."""
_NS_PER_S: Final = 1_000_000_000


def check_given(value: value_pb2.Value, field: str) -> None:
    """Return if the value can be kept and read back.

    Args:
        value: what the client sent.
        field: its name in the request.

    Raises:
        InvalidArgumentError: it cannot.
    """
    try:
        check_value(value)
    except ValueError as error:
        raise InvalidArgumentError(field, f"must be a readable value ({error})") from None


def check_parts_of(config: config_pb2.ExperimentConfig) -> None:
    """Return if every value of a configuration can be kept, and every text be used.

    Raises:
        InvalidArgumentError: one cannot.
    """
    check_text(config.trial_command, "trial_command")
    for name in ("max_experiment_duration", "max_trial_duration"):
        length_ms(getattr(config, name), name)
    check_given(config.search_space, "search_space")
    for name in ("tuner", "assessor", "advisor"):
        algorithm: config_pb2.AlgorithmConfig = getattr(config, name)
        check_given(algorithm.class_args, f"{name}.class_args")
        check_text(algorithm.name, f"{name}.name")
        check_text(algorithm.custom.class_name, f"{name}.class_name")
        check_text(algorithm.custom.code_directory, f"{name}.code_directory")
        check_text(algorithm.server_address, f"{name}.server_address")
    for service in config.training_services:
        check_given(service.options, "training_service.options")


def check_text(text: str, field: str) -> None:
    """Return if a process can be started with ``text``, or a file opened.

    Raises:
        InvalidArgumentError: it holds the character NUL.
    """
    if "\0" in text:
        raise InvalidArgumentError(field, "must not hold the character NUL", text[:200])


def length_ms(duration: Duration, field: str) -> int:
    """Return a length of time in ms.

    Raises:
        InvalidArgumentError: it is negative, or longer than a protobuf duration may be.
    """
    if not (0 <= duration.seconds <= LONGEST_S and 0 <= duration.nanos < _NS_PER_S):
        raise InvalidArgumentError(
            field, "must be 0 s to 10,000 years", f"{duration.seconds} s {duration.nanos} ns"
        )
    return to_ms(duration)


def check_environment(environment: Mapping[str, str]) -> None:
    """Return if a process can be started in this environment.

    Raises:
        InvalidArgumentError: a name or a text in it is none; texts are never shown, since they
            may be secrets.
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

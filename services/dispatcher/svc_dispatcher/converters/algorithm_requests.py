"""Converters of requests about algorithms and their results to plain values."""

from typing import Any

from nni.hpo.objectives import DEFAULT_METRIC, Objective
from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_wire.values import check_value, from_value
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.domain.values import RequestedAlgorithm
from svc_dispatcher.ports import TrialOutcome


def requested_algorithms(request: pb.ValidateAlgorithmsRequest) -> list[RequestedAlgorithm]:
    """Return tuner, assessor and advisor of a request, those that are set, as plain values.

    Raises:
        InvalidArgumentError: arguments of a class are no map, or unreadable.
    """
    named = {
        "tuner": request.tuner if request.HasField("tuner") else None,
        "assessor": request.assessor if request.HasField("assessor") else None,
        "advisor": request.advisor if request.HasField("advisor") else None,
    }
    return [
        _requested(kind, config, request) for kind, config in named.items() if config is not None
    ]


def plain_value(value: value_pb2.Value, field: str) -> Any:  # noqa: ANN401 - any JSON value
    """Convert a proto value to plain Python; raise InvalidArgumentError naming ``field`` if bad.

    Raises:
        InvalidArgumentError: the value is unreadable; the error names ``field``.
    """
    try:
        check_value(value)
    except ValueError as error:
        raise InvalidArgumentError(field, f"must be a readable value ({error})") from None
    return from_value(value)


def trial_outcomes(messages: Any) -> list[TrialOutcome]:  # noqa: ANN401 - a repeated field
    """Convert proto trial results to (trial id, parameters, metric) with plain JSON values.

    Raises:
        InvalidArgumentError: a value is unreadable.
    """
    return [
        TrialOutcome(
            message.trial_id,
            plain_value(message.parameters, "outcomes.parameters"),
            plain_value(message.metric, "outcomes.metric"),
        )
        for message in messages
    ]


def plain_objective(message: metric_pb2.Objective) -> Objective:
    """Convert a proto objective to the domain; unnamed is the default metric, unset minimizes."""
    return Objective(
        message.metric or DEFAULT_METRIC,
        "maximize" if message.mode == metric_pb2.OPTIMIZE_MODE_MAXIMIZE else "minimize",
    )


def _requested(
    kind: str, config: config_pb2.AlgorithmConfig, request: pb.ValidateAlgorithmsRequest
) -> RequestedAlgorithm:
    args = config.class_args
    class_args = plain_value(args, f"{kind}.classArgs") if config.HasField("class_args") else {}
    if class_args is None:
        class_args = {}
    if not isinstance(class_args, dict):
        raise InvalidArgumentError(f"{kind}.classArgs", "must be a map", class_args)
    return RequestedAlgorithm(
        kind=kind,
        name=config.name,
        class_name=config.custom.class_name,
        code_directory=config.custom.code_directory,
        server_address=config.server_address,
        class_args=class_args,
        several_outcomes=request.several_outcomes,
        replaces_space=request.replaces_space,
        replaced_tuner=request.replaced_tuner.name if request.HasField("replaced_tuner") else None,
    )

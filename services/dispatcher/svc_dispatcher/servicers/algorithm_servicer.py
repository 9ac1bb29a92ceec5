"""gRPC servicer of `nni_proto.tuning.v1.AlgorithmService`."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final

import grpc.aio

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_proto.tuning.v1 import algorithm_service_pb2_grpc as pb_grpc
from nni_wire.values import check_value, from_value
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.converters.replay_messages import update_to_proto
from svc_dispatcher.ports import NamedAlgorithm
from svc_dispatcher.usecases.algorithms import Algorithms, RequestedAlgorithm
from svc_dispatcher.usecases.replays import Replays

_KINDS: Final = {
    pb.ALGORITHM_KIND_TUNER: "tuner",
    pb.ALGORITHM_KIND_ASSESSOR: "assessor",
    pb.ALGORITHM_KIND_ADVISOR: "advisor",
}
_KIND_NUMBERS: Final = {name: number for number, name in _KINDS.items()}
_PAGE_SIZE: Final = 100
_PAGE_LIMIT: Final = 1_000

_Context = grpc.aio.ServicerContext[Any, Any]


class AlgorithmServicer(pb_grpc.AlgorithmServiceServicer):
    """gRPC servicer that lists, validates and replays algorithms; see the proto.

    Args:
        algorithms: use cases that list and validate.
        replays: use case that replays experiments.
    """

    def __init__(self, algorithms: Algorithms, replays: Replays) -> None:
        self._algorithms = algorithms
        self._replays = replays

    async def ListAlgorithms(
        self, request: pb.ListAlgorithmsRequest, context: _Context
    ) -> pb.ListAlgorithmsResponse:
        """See the proto."""
        del context
        found = self._algorithms.list_all(_KINDS.get(request.kind, ""))
        start = _page_start(request.page_token)
        end = start + min(request.page_size or _PAGE_SIZE, _PAGE_LIMIT)
        return pb.ListAlgorithmsResponse(
            algorithms=[_algorithm_to_proto(item) for item in found[start:end]],
            next_page_token=str(end) if end < len(found) else "",
        )

    async def ValidateAlgorithms(
        self, request: pb.ValidateAlgorithmsRequest, context: _Context
    ) -> pb.ValidateAlgorithmsResponse:
        """See the proto."""
        del context
        if "\0" in request.interpreter:
            raise InvalidArgumentError(
                "interpreter", "must not hold the character NUL", request.interpreter[:200]
            )
        result = await self._algorithms.validate(
            _choices(request),
            _given(request.search_space, "search_space"),
            request.interpreter,
            [_given(item, f"search.enqueue[{i}]") for i, item in enumerate(request.enqueued)],
        )
        return pb.ValidateAlgorithmsResponse(
            warnings=result.warnings, optimize_mode=result.optimize_mode
        )

    async def ReplaySuggestions(
        self, request: pb.ReplaySuggestionsRequest, context: _Context
    ) -> AsyncIterator[pb.ReplaySuggestionsResponse]:
        """See the proto."""
        del context
        async with aclosing(self._replays.run(request.experiment_id)) as updates:
            async for update in updates:
                yield update_to_proto(update)


def _choices(request: pb.ValidateAlgorithmsRequest) -> list[RequestedAlgorithm]:
    named = {
        "tuner": request.tuner if request.HasField("tuner") else None,
        "assessor": request.assessor if request.HasField("assessor") else None,
        "advisor": request.advisor if request.HasField("advisor") else None,
    }
    return [
        _requested(kind, config, request) for kind, config in named.items() if config is not None
    ]


def _given(value: value_pb2.Value, field: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        check_value(value)
    except ValueError as error:
        raise InvalidArgumentError(field, f"must be a readable value ({error})") from None
    return from_value(value)


def _requested(
    kind: str, config: config_pb2.AlgorithmConfig, request: pb.ValidateAlgorithmsRequest
) -> RequestedAlgorithm:
    args = config.class_args
    class_args = _given(args, f"{kind}.classArgs") if config.HasField("class_args") else {}
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
    )


def _page_start(token: str) -> int:
    if token and not token.isdecimal():
        raise InvalidArgumentError(
            "page_token", "must be one of an earlier response", token, "leave it out"
        )
    return int(token or 0)


def _algorithm_to_proto(item: NamedAlgorithm) -> pb.Algorithm:
    return pb.Algorithm(
        name=item.name,
        kind=_KIND_NUMBERS[item.kind],
        class_name=item.class_name,
        source=item.source,
        space_types=item.space_types,
        lookahead=item.lookahead,
    )

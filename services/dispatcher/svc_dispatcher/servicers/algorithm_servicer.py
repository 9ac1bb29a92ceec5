"""gRPC servicer of `nni_proto.tuning.v1.AlgorithmService`."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final

import grpc.aio

from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_proto.tuning.v1 import algorithm_service_pb2_grpc as pb_grpc
from svc_common.errors import InvalidArgumentError
from svc_common.large_work import encoded
from svc_dispatcher.converters.replay_messages import update_to_proto
from svc_dispatcher.domain.values import Check
from svc_dispatcher.ports import Checks, ClassChoice, NamedAlgorithm
from svc_dispatcher.usecases.algorithms import Algorithms
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
    """gRPC servicer that lists, validates and replays algorithms; converts messages.

    Args:
        algorithms: use cases that list and validate.
        replays: use case that replays experiments.
        checks: runs the checks whose time depends on the request.
    """

    def __init__(self, algorithms: Algorithms, replays: Replays, checks: Checks) -> None:
        self._algorithms = algorithms
        self._replays = replays
        self._checks = checks

    async def ListAlgorithms(
        self, request: pb.ListAlgorithmsRequest, context: _Context
    ) -> pb.ListAlgorithmsResponse:
        """Return a page of the built-in and registered algorithms, of one kind or all."""
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
        """Check algorithms and space in a child, import classes; return warnings and direction."""
        del context
        payload = await encoded(request)
        found = await self._checks.run(Check.ALGORITHMS, payload, "search_space")
        classes = [ClassChoice(*fields) for fields in found["classes"]]
        await self._algorithms.check_classes(classes, found["interpreter"])
        return pb.ValidateAlgorithmsResponse(
            warnings=found["warnings"], optimize_mode=found["optimize_mode"]
        )

    async def ReplaySuggestions(
        self, request: pb.ReplaySuggestionsRequest, context: _Context
    ) -> AsyncIterator[pb.ReplaySuggestionsResponse]:
        """Replay an experiment's log with fresh algorithms; stream differences and the verdict."""
        del context
        async with aclosing(self._replays.run(request.experiment_id)) as updates:
            async for update in updates:
                yield update_to_proto(update)


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

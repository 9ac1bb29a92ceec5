"""Cache of the dispatcher's analyses: importance costs a process and seconds of a core."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeAlias

from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from svc_common.errors import FailedPreconditionError
from svc_manager.adapters.caller_turns import CallerTurns
from svc_manager.ports import Analyst

ANSWERS_KEPT: Final = 64
"""Cached responses of a few hundred bytes each: one for every chart that is open."""

_Answer: TypeAlias = pb.MeasureImportanceResponse | FailedPreconditionError


class CachingAnalyst:
    """Decorator of an `Analyst` that caches importance by the hash of its request; else passes on.

    A response follows from its request alone, which holds all results; so it stays valid for ever,
    as does the refusal of too few results. Other failures are not cached. Requests run one at a
    time: concurrent equal requests share one response.

    Args:
        inner: computes uncached responses.
        turns: of the callers at the dispatcher's checks; importance has turns of its own.
    """

    def __init__(self, inner: Analyst, turns: CallerTurns) -> None:
        self._inner = inner
        self._turns = turns
        self._importance_turns = CallerTurns()
        self._turn = asyncio.Lock()
        self._known: OrderedDict[bytes, _Answer] = OrderedDict()

    async def importance(
        self, request: pb.MeasureImportanceRequest
    ) -> pb.MeasureImportanceResponse:
        """Return cached importance of equal results, else request it; cache refusals, too."""
        key = hashlib.blake2b(request.SerializeToString(deterministic=True)).digest()
        answer = self._known.get(key)
        if answer is None:
            # The dispatcher runs one measurement at a time, too.
            async with self._importance_turns.turn(), self._turn:
                answer = self._known.get(key) or await self._request(request)
                self._known[key] = answer
        self._known.move_to_end(key)
        if len(self._known) > ANSWERS_KEPT:
            self._known.popitem(last=False)
        if isinstance(answer, FailedPreconditionError):
            raise FailedPreconditionError(answer.message, answer.facts)
        return answer

    async def front(self, request: pb.FindParetoFrontRequest) -> pb.FindParetoFrontResponse:
        """Request the Pareto front from the inner analyst, without a cache."""
        async with self._turns.turn():
            return await self._inner.front(request)

    async def broken(self, request: pb.CheckConfigurationsRequest) -> Sequence[str]:
        """Request the broken constraints from the inner analyst, uncached; empty text: none."""
        async with self._turns.turn():
            return await self._inner.broken(request)

    async def _request(self, request: pb.MeasureImportanceRequest) -> _Answer:
        try:
            return await self._inner.importance(request)
        except FailedPreconditionError as error:
            return error

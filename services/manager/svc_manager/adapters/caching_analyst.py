"""An analyst that is not asked twice: importance costs a process and seconds of a core."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeAlias

from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from svc_common.errors import FailedPreconditionError
from svc_manager.ports import Analyst

ANSWERS_KEPT: Final = 64
"""Of a few hundred bytes each: one for every chart that people look at now."""

_Answer: TypeAlias = pb.MeasureImportanceResponse | FailedPreconditionError


class CachingAnalyst:
    """`Analyst` that answers what was asked before from memory.

    An answer follows from its request alone, which holds all results; so one that was given is
    right for ever, and so is the refusal of too few results. What fails for another reason is
    asked again. One question at a time: whoever asks what is being computed gets that answer.

    Args:
        inner: answers what is new.
    """

    def __init__(self, inner: Analyst) -> None:
        self._inner = inner
        self._turn = asyncio.Lock()
        self._known: OrderedDict[bytes, _Answer] = OrderedDict()

    async def importance(
        self, request: pb.MeasureImportanceRequest
    ) -> pb.MeasureImportanceResponse:
        """See `Analyst.importance`."""
        key = hashlib.blake2b(request.SerializeToString(deterministic=True)).digest()
        answer = self._known.get(key)
        if answer is None:
            async with self._turn:  # the dispatcher measures one after the other, too
                answer = self._known.get(key) or await self._asked(request)
                self._known[key] = answer
        self._known.move_to_end(key)
        if len(self._known) > ANSWERS_KEPT:
            self._known.popitem(last=False)
        if isinstance(answer, FailedPreconditionError):
            raise FailedPreconditionError(answer.message, answer.facts)
        return answer

    async def front(self, request: pb.FindParetoFrontRequest) -> pb.FindParetoFrontResponse:
        """See `Analyst.front`."""
        return await self._inner.front(request)

    async def broken(self, request: pb.CheckConfigurationsRequest) -> Sequence[str]:
        """See `Analyst.broken`."""
        return await self._inner.broken(request)

    async def _asked(self, request: pb.MeasureImportanceRequest) -> _Answer:
        try:
            return await self._inner.importance(request)
        except FailedPreconditionError as error:
            return error

"""Cached analyses: computed requests are not repeated, failed ones are."""

import asyncio
from collections.abc import Sequence

import pytest

from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from svc_common.errors import FailedPreconditionError, ServiceError, UnavailableError
from svc_manager.adapters.caching_analyst import ANSWERS_KEPT, CachingAnalyst
from svc_manager.adapters.caller_turns import CallerTurns


class CountingAnalyst:
    """`Analyst` that returns the number of results, or refuses."""

    def __init__(self, refusal: ServiceError | None = None) -> None:
        self.refusal = refusal
        self.asked = 0

    async def importance(
        self, request: pb.MeasureImportanceRequest
    ) -> pb.MeasureImportanceResponse:
        self.asked += 1
        await asyncio.sleep(0)  # others have their turn, as during any call
        if self.refusal is not None:
            raise self.refusal
        return pb.MeasureImportanceResponse(outcomes=len(request.outcomes))

    async def front(self, request: pb.FindParetoFrontRequest) -> pb.FindParetoFrontResponse:
        return pb.FindParetoFrontResponse(trial_ids=[one.trial_id for one in request.outcomes])

    async def broken(self, request: pb.CheckConfigurationsRequest) -> Sequence[str]:
        return [""] * len(request.configurations)


def results(count: int) -> pb.MeasureImportanceRequest:
    return pb.MeasureImportanceRequest(
        outcomes=[pb.Outcome(trial_id=f"t{number}") for number in range(count)]
    )


async def test_the_same_results_are_measured_once() -> None:
    inner = CountingAnalyst()
    analyst = CachingAnalyst(inner, CallerTurns())

    first = await analyst.importance(results(3))
    again = await analyst.importance(results(3))
    more = await analyst.importance(results(4))

    assert (first.outcomes, again.outcomes, more.outcomes) == (3, 3, 4)
    assert inner.asked == 2


async def test_those_who_ask_at_the_same_time_share_one_measurement() -> None:
    inner = CountingAnalyst()
    analyst = CachingAnalyst(inner, CallerTurns())

    answers = await asyncio.gather(*(analyst.importance(results(3)) for _ in range(5)))

    assert [one.outcomes for one in answers] == [3] * 5
    assert inner.asked == 1


async def test_too_few_results_are_refused_from_memory() -> None:
    inner = CountingAnalyst(FailedPreconditionError("too few results"))
    analyst = CachingAnalyst(inner, CallerTurns())

    for _ in range(3):
        with pytest.raises(FailedPreconditionError, match="too few"):
            await analyst.importance(results(1))

    assert inner.asked == 1


async def test_a_dispatcher_that_was_away_is_asked_again() -> None:
    inner = CountingAnalyst(UnavailableError("the dispatcher is away"))
    analyst = CachingAnalyst(inner, CallerTurns())
    with pytest.raises(UnavailableError):
        await analyst.importance(results(3))
    inner.refusal = None

    assert (await analyst.importance(results(3))).outcomes == 3


async def test_only_the_latest_answers_are_kept() -> None:
    inner = CountingAnalyst()
    analyst = CachingAnalyst(inner, CallerTurns())
    for count in range(ANSWERS_KEPT + 1):
        await analyst.importance(results(count))

    await analyst.importance(results(ANSWERS_KEPT))
    assert inner.asked == ANSWERS_KEPT + 1
    await analyst.importance(results(0))

    assert inner.asked == ANSWERS_KEPT + 2


async def test_other_questions_are_passed_on() -> None:
    analyst = CachingAnalyst(CountingAnalyst(), CallerTurns())

    front = await analyst.front(pb.FindParetoFrontRequest(outcomes=[pb.Outcome(trial_id="t1")]))
    broken = await analyst.broken(pb.CheckConfigurationsRequest())

    assert list(front.trial_ids) == ["t1"]
    assert broken == []

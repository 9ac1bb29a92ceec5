"""The gRPC service of algorithms, called without a server."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.adapters.registry_catalog import RegistryCatalog
from svc_dispatcher.domain.replay import ReplayProgress, ReplayUpdate
from svc_dispatcher.ports import ClassChoice
from svc_dispatcher.servicers.algorithm_servicer import AlgorithmServicer
from svc_dispatcher.usecases.algorithms import Algorithms
from tests.support.inline_checks import InlineChecks

CONTEXT: Any = None
"""Unused by all methods."""
SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


class Checker:
    """`ClassChecker` that accepts all classes and records the interpreters."""

    def __init__(self) -> None:
        self.interpreters: list[str] = []

    async def check(self, choice: ClassChoice, interpreter: str) -> str:
        self.interpreters.append(interpreter)
        return ""


class ScriptedReplays:
    """Replays with fixed updates."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    async def run(self, experiment_id: str) -> AsyncGenerator[ReplayUpdate, None]:
        try:
            yield ReplayProgress(0, 0)
            yield ReplayProgress(3, 9)
        finally:
            self.closed.append(experiment_id)


class Bench:
    """The servicer with its fakes."""

    def __init__(self) -> None:
        self.checker, self.replays = Checker(), ScriptedReplays()
        algorithms = Algorithms(RegistryCatalog(), self.checker)
        self.servicer = AlgorithmServicer(algorithms, self.replays, InlineChecks())  # type: ignore[arg-type] # scripted

    async def page(self, size: int, token: str = "", **kind: Any) -> pb.ListAlgorithmsResponse:
        request = pb.ListAlgorithmsRequest(page_size=size, page_token=token, **kind)
        return await self.servicer.ListAlgorithms(request, CONTEXT)

    async def refusal(self, **request: Any) -> str:
        with pytest.raises(InvalidArgumentError) as refused:
            await self.servicer.ValidateAlgorithms(pb.ValidateAlgorithmsRequest(**request), CONTEXT)
        return refused.value.message


async def test_pages_join_to_the_whole_list() -> None:
    bench = Bench()
    whole = await bench.page(0)

    names: list[str] = []
    page = await bench.page(7)
    while page.next_page_token:
        names += [item.name for item in page.algorithms]
        page = await bench.page(7, page.next_page_token)
    names += [item.name for item in page.algorithms]

    assert names == [item.name for item in whole.algorithms]
    assert len(names) > 7


async def test_list_has_the_wanted_kind_only() -> None:
    found = await Bench().page(0, kind=pb.ALGORITHM_KIND_ASSESSOR)

    assert {item.kind for item in found.algorithms} == {pb.ALGORITHM_KIND_ASSESSOR}
    assert "Medianstop" in {item.name for item in found.algorithms}


async def test_foreign_page_token_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="page_token"):
        await Bench().page(5, "next")


async def test_valid_choice_is_checked_under_the_given_interpreter() -> None:
    bench = Bench()
    request = pb.ValidateAlgorithmsRequest(search_space=to_value(SPACE), interpreter="/py")
    request.tuner.name = "TPE"
    request.tuner.class_args.CopyFrom(to_value({"optimize_mode": "minimize"}))

    answer = await bench.servicer.ValidateAlgorithms(request, CONTEXT)

    assert (answer.optimize_mode, list(answer.warnings)) == ("minimize", [])
    assert bench.checker.interpreters == ["/py"]


async def test_interpreter_with_a_nul_is_refused() -> None:
    assert "interpreter must not hold" in await Bench().refusal(interpreter="/py\0")


async def test_arguments_that_are_no_map_are_refused_by_their_field() -> None:
    tuner = {"name": "TPE", "class_args": to_value([1])}

    assert "tuner.classArgs must be a map" in await Bench().refusal(tuner=tuner)


async def test_replay_streams_its_updates_and_is_closed() -> None:
    bench = Bench()
    request = pb.ReplaySuggestionsRequest(experiment_id="e1")

    updates = [item async for item in bench.servicer.ReplaySuggestions(request, CONTEXT)]

    assert [(item.progress.handled, item.progress.total) for item in updates] == [(0, 0), (3, 9)]
    assert bench.replays.closed == ["e1"]

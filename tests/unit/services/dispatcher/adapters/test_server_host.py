"""Sessions with an external algorithm on a server in this process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_dispatcher.adapters.server_host import ServerHostLauncher
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import AlgorithmChoice, ExperimentSetup, Position
from svc_dispatcher.ports import AlgorithmHost
from tests.support.tuning_server import TuningServer, tuning_server

SPACE = to_value({"x": {"_type": "uniform", "_value": [0, 1]}})


class Session:
    """An open session and its recorded outputs (`HostSink`)."""

    def __init__(self, server: TuningServer) -> None:
        self.server = server
        self.host: AlgorithmHost
        self.outputs: list[answers.Output] = []
        self.reasons: list[str] = []
        self._changed = asyncio.Event()

    def on_outputs(self, outputs: Sequence[answers.Output]) -> None:
        self.outputs += outputs
        self._changed.set()

    def on_end(self, reason: str) -> None:
        self.reasons.append(reason)
        self._changed.set()

    async def run(self, *made: commands.Command) -> list[Any]:
        """Send commands; return their outputs without `Done`."""
        self.outputs.clear()
        last = answers.Done(made[-1].position)
        self.host.send(made)
        async with asyncio.timeout(30):
            while last not in self.outputs and not self.reasons:
                self._changed.clear()
                await self._changed.wait()
        return [output for output in self.outputs if not isinstance(output, answers.Done)]


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    async with tuning_server() as (server, address):
        setup = ExperimentSetup(
            experiment_id="exp",
            directory=str(tmp_path),
            interpreter="",
            tuner=AlgorithmChoice(server_address=address),
            assessor=None,
            advisor=None,
            search_space=SPACE,
            seed=3,
            log_level="info",
            config=config_pb2.ExperimentConfig(),
        )
        opened = Session(server)
        opened.host = await ServerHostLauncher().launch(setup, opened, eager=False)
        (ready,) = await opened.run(commands.Initialize(Position(1, 0), setup, SPACE, 3))
        assert ready == answers.Ready(lookahead=True, assesses=True, provenance=())
        yield opened
        await opened.host.aclose()


def generate(sequence: int, *ids: int, replayed: bool = False) -> commands.Generate:
    return commands.Generate(Position(sequence, 0), f"r{sequence}", ids, replayed)


def metric(sequence: int, value: object, *, customized: bool = False) -> commands.TellMetric:
    at = Position(sequence, 0)
    return commands.TellMetric(at, "t", 1, 0, False, 0, to_value(value), customized)


async def test_recorded_parameters_that_differ_are_reported(session: Session) -> None:
    (answer,) = await session.run(generate(2, 0))
    mine = answer.suggestions[0].parameters
    other = to_value({"x": 7})

    assert await session.run(commands.Recorded(Position(3, 0), ((0, mine),))) == []
    assert await session.run(commands.Recorded(Position(4, 0), ((0, other),))) == [
        answers.Diverged(Position(4, 0), 0, other, mine)
    ]


async def test_replayed_request_has_no_answer(session: Session) -> None:
    assert await session.run(generate(2, 0, replayed=True)) == []


async def test_trial_of_the_user_is_not_sent(session: Session) -> None:
    at = Position(4, 0)

    await session.run(
        metric(2, -1, customized=True), commands.TellEnd(at, "t", 0, "SUCCEEDED", True)
    )

    assert session.server.calls == [("open", "exp")]


async def test_metric_and_end_are_sent_in_order(session: Session) -> None:
    at = Position(3, 0)

    outputs = await session.run(metric(2, -1), commands.TellEnd(at, "t", 0, "SUCCEEDED", False))

    assert outputs == [answers.StopAdvised(Position(2, 0), "t")]
    assert session.server.calls[1:] == [("metric", "t", -1, False), ("end", "t", "SUCCEEDED")]


async def test_results_of_earlier_generations_are_imported_as_samples(session: Session) -> None:
    sample = (to_value({"x": 0.5}), to_value(0.25))

    await session.run(commands.ImportTrials(Position(2, 0), (sample,)))

    assert session.server.calls[1:] == [("import", [{"parameter": {"x": 0.5}, "value": 0.25}])]


async def test_unreadable_suggestion_ends_the_session(session: Session) -> None:
    session.server.garbled = True

    await session.run(generate(2, 5))

    (reason,) = session.reasons
    assert reason.startswith("the algorithm's server made an unreadable suggestion, number 5: ")


async def test_closed_host_closes_its_session(session: Session) -> None:
    await session.host.aclose()

    assert session.server.calls[-1] == ("close", "session-0")
    assert session.reasons == []

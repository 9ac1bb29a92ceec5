"""Contract of `AlgorithmHost`: in a child process, behind gRPC, in this process."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value, to_value
from svc_common.errors import FailedPreconditionError, UnavailableError
from svc_dispatcher.adapters.child_host import ChildHostLauncher
from svc_dispatcher.adapters.server_host import ServerHostLauncher
from svc_dispatcher.converters.log_messages import as_value
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import AlgorithmChoice, ExperimentSetup, Position
from svc_dispatcher.ports import HostLauncher
from tests.support.in_process_host import InProcessLauncher
from tests.support.tuning_server import tuning_server

SPACE = to_value({"x": {"_type": "uniform", "_value": [0, 1]}})


@dataclass
class Listener:
    """A sink that waits."""

    outputs: list[answers.Output] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def on_outputs(self, outputs: Sequence[answers.Output]) -> None:
        self.outputs += outputs
        self._changed.set()

    def on_end(self, reason: str) -> None:
        self.reasons.append(reason)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def done(self, position: Position) -> None:
        await self.until(
            lambda: any(
                isinstance(output, answers.Done) and output.position >= position
                for output in self.outputs
            )
        )

    def of(self, kind: type) -> list[Any]:
        return [output for output in self.outputs if isinstance(output, kind)]


@dataclass
class Case:
    launcher: HostLauncher
    setup: ExperimentSetup
    listener: Listener = field(default_factory=Listener)

    def first(self, **choice: Any) -> commands.Initialize:
        assert self.setup.tuner is not None
        setup = replace(self.setup, tuner=replace(self.setup.tuner, **choice))
        return commands.Initialize(Position(1, 0), setup, SPACE, 3)


@pytest.fixture(params=["child", "server", "in process"])
async def case(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Case]:
    setup = ExperimentSetup(
        experiment_id="exp",
        directory=str(tmp_path),
        interpreter="",
        tuner=AlgorithmChoice(name="Random"),
        assessor=None,
        advisor=None,
        search_space=SPACE,
        seed=3,
        log_level="info",
        config=config_pb2.ExperimentConfig(),
    )
    if request.param == "child":
        yield Case(ChildHostLauncher(dict(os.environ)), setup)
    elif request.param == "in process":
        yield Case(InProcessLauncher(), setup)
    else:
        async with tuning_server() as (_, address):
            choice = AlgorithmChoice(server_address=address)
            yield Case(ServerHostLauncher(), replace(setup, tuner=choice))


def generate(sequence: int, *ids: int, replayed: bool = False) -> commands.Generate:
    return commands.Generate(Position(sequence, 0), f"r{sequence}", ids, replayed)


async def test_commands_are_handled_in_order(case: Case) -> None:
    host = await case.launcher.launch(case.setup, case.listener, eager=True)

    host.send([case.first(), generate(2, 0)])
    host.send([generate(3, 1, 2)])
    await case.listener.done(Position(3, 0))
    await host.aclose()

    (ready,) = case.listener.of(answers.Ready)
    assert ready.lookahead
    assert case.listener.outputs.index(ready) == 0
    ids = [
        [item.parameter_id for item in output.suggestions]
        for output in case.listener.of(answers.Generated)
    ]
    assert ids == [[0], [1, 2]]
    done = [output.position for output in case.listener.of(answers.Done)]
    assert done == sorted(done)


async def test_fresh_host_repeats_itself_and_says_only_what_is_new(case: Case) -> None:
    suggested = []
    for replayed in (False, True):
        case.listener = Listener()
        host = await case.launcher.launch(case.setup, case.listener, eager=False)
        host.send([case.first(), generate(2, 0, replayed=replayed), generate(3, 1)])
        await case.listener.done(Position(3, 0))
        await host.aclose()
        suggested.append(
            {
                item.parameter_id: from_value(as_value(item.parameters))
                for output in case.listener.of(answers.Generated)
                for item in output.suggestions
            }
        )

    assert suggested[0].keys() == {0, 1}
    assert suggested[1] == {1: suggested[0][1]}


async def test_what_the_log_holds_is_compared(case: Case) -> None:
    host = await case.launcher.launch(case.setup, case.listener, eager=False)
    host.send([case.first(), generate(2, 0, 1)])
    await case.listener.done(Position(2, 0))
    (generated,) = case.listener.of(answers.Generated)

    equal = generated.suggestions[0].parameters
    host.send([commands.Recorded(Position(3, 0), ((0, equal), (1, to_value({"x": 9}))))])
    await case.listener.done(Position(3, 0))
    await host.aclose()

    (diverged,) = case.listener.of(answers.Diverged)
    assert diverged.parameter_id == 1
    assert diverged.recorded == to_value({"x": 9})


async def test_reports_ends_and_imports_are_handled(case: Case) -> None:
    host = await case.launcher.launch(case.setup, case.listener, eager=False)
    host.send(
        [
            case.first(),
            generate(2, 0),
            commands.TellMetric(Position(3, 0), "t", 1, 0, True, 0, to_value(0.5), False),
            commands.TellEnd(Position(3, 1), "t", 0, "SUCCEEDED", False),
            commands.ImportData(Position(4, 0), to_value([])),
            commands.ImportTrials(Position(4, 1), ((to_value({"x": 0.5}), to_value(1.0)),)),
            commands.ImportReports(Position(5, 0), (commands.PastReport("t", 1, 0, to_value(1)),)),
            commands.UpdateSearchSpace(Position(5, 0), SPACE),
            commands.AddCustomized(Position(5, 1), 9, to_value({"x": 0.1})),
            generate(6, 1),
        ]
    )
    await case.listener.done(Position(6, 0))
    await host.aclose()

    assert len(case.listener.of(answers.Generated)) == 2
    assert case.listener.of(answers.CallFailed) == []


async def test_algorithm_that_refuses_its_arguments_is_unbuildable(case: Case) -> None:
    host = await case.launcher.launch(case.setup, case.listener, eager=False)

    host.send([case.first(class_args=to_value({"bad": 1}))])
    await case.listener.until(lambda: bool(case.listener.of(answers.Unbuildable)))
    await host.aclose()

    (unbuildable,) = case.listener.of(answers.Unbuildable)
    assert "bad" in unbuildable.reason


async def test_closed_host_is_silent(case: Case) -> None:
    host = await case.launcher.launch(case.setup, case.listener, eager=False)
    host.send([case.first()])

    await host.aclose()
    await host.aclose()
    heard = len(case.listener.outputs)
    host.send([generate(2, 0)])
    await asyncio.sleep(0)

    assert len(case.listener.outputs) == heard
    assert case.listener.reasons == []


async def test_failing_server_ends_its_host(tmp_path: Path) -> None:
    listener = Listener()
    async with tuning_server() as (servicer, address):
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
        servicer.broken = True
        host = await ServerHostLauncher().launch(setup, listener, eager=False)
        host.send([commands.Initialize(Position(1, 0), setup, SPACE, 3), generate(2, 0)])
        await listener.until(lambda: bool(listener.reasons))
        await host.aclose()

    assert listener.reasons == ["the algorithm's server failed: broken"]


async def test_server_receives_reports_and_advises(tmp_path: Path, case: Case) -> None:
    if not isinstance(case.launcher, ServerHostLauncher):
        pytest.skip("an assessor decides elsewhere")
    host = await case.launcher.launch(case.setup, case.listener, eager=False)

    host.send(
        [
            case.first(),
            generate(2, 0),
            commands.TellMetric(Position(3, 0), "t", 1, 0, False, 0, to_value(-1), False),
        ]
    )
    await case.listener.done(Position(3, 0))
    await host.aclose()

    assert case.listener.of(answers.StopAdvised) == [answers.StopAdvised(Position(3, 0), "t")]


async def test_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    launcher = ServerHostLauncher(connect_timeout_s=0.05)
    setup = ExperimentSetup(
        experiment_id="exp",
        directory=str(tmp_path),
        interpreter="",
        tuner=AlgorithmChoice(server_address="127.0.0.1:1"),
        assessor=None,
        advisor=None,
        search_space=SPACE,
        seed=3,
        log_level="info",
    )

    with pytest.raises(UnavailableError, match="cannot be reached"):
        await launcher.launch(setup, Listener(), eager=False)


async def test_child_that_cannot_be_started_is_reported_with_a_remedy(tmp_path: Path) -> None:
    setup = ExperimentSetup(
        experiment_id="exp",
        directory=str(tmp_path),
        interpreter=str(tmp_path / "no-python"),
        tuner=AlgorithmChoice(name="Random"),
        assessor=None,
        advisor=None,
        search_space=SPACE,
        seed=3,
        log_level="info",
    )

    with pytest.raises(FailedPreconditionError, match="no-python"):
        await ChildHostLauncher({}).launch(setup, Listener(), eager=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(FailedPreconditionError, match="check the folder"):
        await ChildHostLauncher({}).launch(
            replace(setup, directory=str(tmp_path / "file")), Listener(), eager=False
        )


async def test_child_that_ends_by_itself_tells_its_last_words(
    tmp_path: Path,
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho first >&2\necho 'No module named nni' >&2\nexit 3\n")
    interpreter.chmod(0o755)
    setup = ExperimentSetup(
        experiment_id="exp",
        directory=str(tmp_path),
        interpreter=str(interpreter),
        tuner=AlgorithmChoice(name="Random"),
        assessor=None,
        advisor=None,
        search_space=SPACE,
        seed=3,
        log_level="info",
    )
    listener = Listener()

    host = await ChildHostLauncher(dict(os.environ)).launch(setup, listener, eager=False)
    await listener.until(lambda: bool(listener.reasons))
    await host.aclose()

    assert listener.reasons == [
        "the algorithm's process ended with exit code 3: No module named nni"
    ]
    log = (tmp_path / "log" / "dispatcher.log").read_text()
    assert "] ERROR (svc_dispatcher/MainThread) the algorithm's process ended" in log

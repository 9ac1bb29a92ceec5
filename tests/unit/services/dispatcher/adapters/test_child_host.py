"""Hosts in child processes; scripted interpreters stand in for `nni.hpo.host`."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from nni_wire.values import to_value
from svc_common.errors import FailedPreconditionError
from svc_dispatcher.adapters.child_host import ChildHost, ChildHostLauncher
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import AlgorithmChoice, ExperimentSetup, Position

PRELUDE = """#!{python} -S
import json, os, signal, sys
source = open(int(sys.argv[sys.argv.index("--in-fd") + 1]))
target = int(sys.argv[sys.argv.index("--out-fd") + 1])
def say(text): os.write(target, text.encode())
first = json.loads(source.readline())
"""
DONE = """say('{"done": [1, 0]}\\n')\n"""


class Sink:
    """`HostSink` that records its calls."""

    def __init__(self) -> None:
        self.outputs: list[answers.Output] = []
        self.reasons: list[str] = []
        self._changed = asyncio.Event()

    def on_outputs(self, outputs: Sequence[answers.Output]) -> None:
        self.outputs += outputs
        self._changed.set()

    def on_end(self, reason: str) -> None:
        self.reasons.append(reason)
        self._changed.set()

    async def until_end(self) -> str:
        async with asyncio.timeout(60):
            while not self.reasons:
                self._changed.clear()
                await self._changed.wait()
        return self.reasons[0]

    async def until_output(self) -> None:
        async with asyncio.timeout(60):
            while not self.outputs:
                self._changed.clear()
                await self._changed.wait()


def setup(folder: Path, interpreter: str) -> ExperimentSetup:
    return ExperimentSetup(
        experiment_id="exp",
        directory=str(folder / "exp"),
        interpreter=interpreter,
        tuner=AlgorithmChoice(name="Random"),
        assessor=None,
        advisor=None,
        search_space=to_value({}),
        seed=1,
        log_level="info",
    )


async def launched(folder: Path, script: str, sink: Sink) -> ChildHost:
    """Launch a scripted host and send its first command."""
    path = folder / "interpreter"
    path.write_text(PRELUDE.format(python=sys.executable) + script)
    path.chmod(0o755)
    made = setup(folder, str(path))
    host = await ChildHostLauncher({"PATH": "/usr/bin:/bin"}).launch(made, sink, eager=True)
    host.send([commands.Initialize(Position(1, 0), made, to_value({}), 1)])
    return host


async def test_exit_code_is_reported_with_the_last_line_of_the_log(tmp_path: Path) -> None:
    sink = Sink()
    host = await launched(tmp_path, "sys.stderr.write('ImportError: no m\\n'); sys.exit(3)", sink)

    reason = await sink.until_end()

    assert reason == "the algorithm's process ended with exit code 3: ImportError: no m"
    assert "exit code 3" in (tmp_path / "exp/log/dispatcher.log").read_text()
    await host.aclose()


async def test_signal_is_reported_by_its_name(tmp_path: Path) -> None:
    sink = Sink()
    host = await launched(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", sink)

    assert await sink.until_end() == "the algorithm's process was killed by SIGKILL"
    await host.aclose()


async def test_outputs_before_the_end_are_passed_on(tmp_path: Path) -> None:
    sink = Sink()
    host = await launched(tmp_path, DONE, sink)

    await sink.until_end()

    assert sink.outputs == [answers.Done(Position(1, 0))]
    await host.aclose()


async def test_line_in_two_writes_is_one_output(tmp_path: Path) -> None:
    sink = Sink()
    script = """say('{"done": '); source.readline(); say('[1, 0]}\\n'); source.readline()"""
    host = await launched(tmp_path, script, sink)
    host.send([commands.Recorded(Position(2, 0), ())])

    await sink.until_output()

    assert sink.outputs == [answers.Done(Position(1, 0))]
    await host.aclose()


async def test_invalid_line_ends_the_host_and_nothing_after_it_counts(tmp_path: Path) -> None:
    sink = Sink()
    script = DONE + """say('nonsense\\n{"done": [9, 0]}\\n'); signal.pause()"""
    host = await launched(tmp_path, script, sink)

    reason = await sink.until_end()

    assert reason.startswith("the algorithm's output cannot be used: the host sent an invalid")
    assert sink.outputs == [answers.Done(Position(1, 0))]
    await host.aclose()


async def test_closed_host_calls_its_sink_no_more(tmp_path: Path) -> None:
    sink = Sink()
    host = await launched(tmp_path, DONE + "signal.pause()", sink)
    await sink.until_output()

    await host.aclose()
    await host.aclose()
    host.send([commands.Recorded(Position(2, 0), ())])

    assert sink.reasons == []


async def test_large_commands_reach_a_host_that_reads_late(tmp_path: Path) -> None:
    sink = Sink()
    script = (
        "line = source.readline(); say('{\"done\": [1, %d]}\\n' % len(line)); source.readline()"
    )
    host = await launched(tmp_path, script, sink)

    host.send([commands.ImportData(Position(2, 0), to_value("x" * 1_000_000))])
    await sink.until_output()

    (done,) = sink.outputs
    assert isinstance(done, answers.Done)
    assert done.position.place > 1_000_000
    await host.aclose()


async def test_missing_interpreter_is_a_failed_precondition(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="cannot be started with '/no/such'"):
        await ChildHostLauncher({}).launch(setup(tmp_path, "/no/such"), Sink(), eager=False)


async def test_folder_that_cannot_be_made_is_a_failed_precondition(tmp_path: Path) -> None:
    (tmp_path / "exp").write_text("a file")

    with pytest.raises(FailedPreconditionError, match="check the folder"):
        await ChildHostLauncher({}).launch(setup(tmp_path, ""), Sink(), eager=False)

"""Hosts in child processes; scripted interpreters stand in for `nni.hpo.host`."""

import asyncio
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from nni_wire.values import to_value
from svc_common.errors import FailedPreconditionError
from svc_common.large_work import ON_LOOP_BYTES
from svc_dispatcher.adapters.child_host import ChildHost, ChildHostLauncher
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import AlgorithmChoice, ExperimentSetup, Payload, Position

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

    async def until_output(self, count: int = 1) -> None:
        async with asyncio.timeout(60):
            while len(self.outputs) < count:
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


class Samples(tuple[tuple[Payload, Payload], ...]):
    """Samples that remember in which threads they were read."""

    threads: ClassVar[list[str]]

    def __iter__(self) -> Iterator[tuple[Payload, Payload]]:
        self.threads.append(threading.current_thread().name)
        return super().__iter__()


def threads_of(host: ChildHost, size_bytes: int) -> list[str]:
    """Send samples of a size; return the threads in which they are read, now and later."""
    threads: list[str] = []
    Samples.threads = threads
    samples = Samples([(to_value("x" * size_bytes), to_value(1.0))])
    host.send([commands.ImportTrials(Position(2, 0), samples)])
    return threads


EACH_POSITION = """
for line in source:
    say('{"done": %s}\\n' % json.dumps(json.loads(line)["position"]))
"""


async def test_large_commands_are_encoded_off_the_loop_and_small_ones_at_once(
    tmp_path: Path,
) -> None:
    sink = Sink()
    host = await launched(tmp_path, EACH_POSITION, sink)

    small = set(threads_of(host, ON_LOOP_BYTES // 2))
    large = threads_of(host, 2 * ON_LOOP_BYTES)
    await sink.until_output(2)

    assert small == {threading.current_thread().name}
    assert large[-1].startswith("large-work")
    await host.aclose()


async def test_commands_keep_their_order_behind_a_large_one(tmp_path: Path) -> None:
    sink = Sink()
    host = await launched(tmp_path, EACH_POSITION, sink)

    for number in range(2, 7):
        text = "x" * (2 * ON_LOOP_BYTES if number in {2, 5} else 1)
        host.send([commands.ImportData(Position(number, 0), to_value(text))])
    await sink.until_output(5)

    assert sink.outputs == [answers.Done(Position(number, 0)) for number in range(2, 7)]
    await host.aclose()


async def test_host_is_ended_by_a_large_command_that_cannot_be_encoded(tmp_path: Path) -> None:
    sink = Sink()
    host = await launched(tmp_path, "signal.pause()", sink)
    samples = ((to_value("x" * 2 * ON_LOOP_BYTES), "no message"),)

    host.send([commands.ImportTrials(Position(2, 0), samples)])

    assert (await sink.until_end()).startswith(
        "commands cannot be sent to the algorithm: TypeError"
    )
    await host.aclose()


async def test_host_closes_while_commands_are_encoded(tmp_path: Path) -> None:
    sink = Sink()
    host = await launched(tmp_path, "signal.pause()", sink)

    threads_of(host, 2 * ON_LOOP_BYTES)
    await host.aclose()

    assert sink.reasons == []


async def test_missing_interpreter_is_a_failed_precondition(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="cannot be started with '/no/such'"):
        await ChildHostLauncher({}).launch(setup(tmp_path, "/no/such"), Sink(), eager=False)


async def test_folder_that_cannot_be_made_is_a_failed_precondition(tmp_path: Path) -> None:
    (tmp_path / "exp").write_text("a file")

    with pytest.raises(FailedPreconditionError, match="check the folder"):
        await ChildHostLauncher({}).launch(setup(tmp_path, ""), Sink(), eager=False)

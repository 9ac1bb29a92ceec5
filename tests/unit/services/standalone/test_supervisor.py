import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import psutil
import pytest
import structlog

from svc_common import environment
from svc_common.clock import ManualClock
from svc_common.errors import FailedPreconditionError
from svc_common.logs import configure
from svc_common.messaging.bus_disk import has_halted
from svc_standalone.children import Command
from svc_standalone.settings import Settings
from svc_standalone.supervisor import Supervisor
from tests.support.answering_bus import answering_bus
from tests.support.ports import free_port

READY = "import os, signal; os.write(int(os.environ['NNI_READY_FD']), b'%s\\n'); signal.pause()"
FACTS = '{"ready": true, "grpc": "here"}'


def python(name: str, code: str, *, reports_ready: bool = True) -> Command:
    return Command(name, (sys.executable, "-c", code), environment.current(), reports_ready)


def service(name: str) -> Command:
    return python(name, READY % FACTS)


def bus() -> Command:
    return python("bus", "import signal; signal.pause()", reports_ready=False)


def make(tmp_path: Path, *commands: Command, timeout_s: float = 20.0) -> Supervisor:
    settings = Settings(tmp_path, start_timeout_s=timeout_s, stop_grace_s=5.0)
    return Supervisor(settings, ManualClock(), {command.name: command for command in commands})


async def running_again(supervisor: Supervisor, name: str, before: int) -> int:
    async with asyncio.timeout(20):
        while True:
            pid = supervisor.pids().get(name, before)
            if pid != before:
                return pid
            await asyncio.sleep(0.001)  # another process: nothing to await here


@contextmanager
def full_disk() -> Iterator[TextIO]:
    """Yield a stream whose writes all fail with ENOSPC."""
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as full:
        yield full
        # Closing flushes once more, which is not the logger's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())


async def until(met: Callable[[], bool], clock: ManualClock | None = None) -> None:
    """Wait for a condition that other processes bring about; advance the clock meanwhile."""
    async with asyncio.timeout(20):
        while True:
            if met():
                return
            if clock is not None:
                clock.advance(10.0)
            await asyncio.sleep(0.001)


async def test_all_are_ready_after_the_start(tmp_path: Path) -> None:
    supervisor = make(tmp_path, bus(), service("manager"), service("dispatcher"))

    facts = await supervisor.start()

    assert facts == {"bus": {}, "manager": {"grpc": "here"}, "dispatcher": {"grpc": "here"}}
    assert set(supervisor.pids()) == {"bus", "manager", "dispatcher"}
    await supervisor.stop()
    assert supervisor.pids() == {}


@pytest.mark.parametrize("victim", ["bus", "manager"])
async def test_killed_child_is_restarted(tmp_path: Path, victim: str) -> None:
    supervisor = make(tmp_path, bus(), service("manager"))
    await supervisor.start()
    before = supervisor.pids()[victim]

    os.kill(before, signal.SIGKILL)
    after = await running_again(supervisor, victim, before)

    assert after != before
    await supervisor.stop()


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit('the port is taken')",
        READY.partition("signal.pause")[0] % '{"ready": false, "error": "the port is taken"}',
    ],
    ids=["last line of its log", "refusal on the pipe"],
)
async def test_child_that_never_becomes_ready_is_named_with_its_reason(
    tmp_path: Path, code: str
) -> None:
    settings = Settings(tmp_path, start_timeout_s=1e9, start_limit_s=1e9)
    clock = ManualClock()
    commands = {"bus": bus(), "manager": python("manager", code)}
    supervisor = Supervisor(settings, clock, commands)
    starting = asyncio.ensure_future(supervisor.start())
    while not starting.done():
        clock.advance(1.0)
        await asyncio.sleep(0.001)  # other processes: nothing to await here

    with pytest.raises(FailedPreconditionError, match="manager does not start: the port is taken"):
        await starting

    await supervisor.stop()


async def test_a_child_that_does_not_start_is_tried_three_times(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    clock = ManualClock()
    code = f"open({str(runs)!r}, 'a').write('x'); raise SystemExit(1)"
    commands = {"bus": bus(), "manager": python("manager", code)}
    settings = Settings(tmp_path, start_timeout_s=1e9, start_limit_s=1e9)
    supervisor = Supervisor(settings, clock, commands)
    starting = asyncio.ensure_future(supervisor.start())
    while not starting.done():
        clock.advance(60.0)
        await asyncio.sleep(0.001)  # other processes: nothing to await here

    with pytest.raises(FailedPreconditionError):
        await starting

    assert runs.read_text() == "xxx"
    await supervisor.stop()


async def started_slowly(
    tmp_path: Path, manager: str, clock_s: Callable[[int, float], float], limit_s: float = 1e9
) -> str:
    """Start children, with 60 s without progress; return why they are given up, if they are.

    Args:
        tmp_path: folder of the supervisor.
        manager: code of a child, which runs after it has written the file `begun`.
        clock_s: returns the time of the clock by the child's process id and the time that is past.
        limit_s: of the start.
    """
    clock, begun = ManualClock(), tmp_path / "begun"
    slow = python("manager", f"open({str(begun)!r}, 'w').close()\n{manager}")
    supervisor = Supervisor(
        Settings(tmp_path, start_timeout_s=60.0, start_limit_s=limit_s),
        clock,
        {one.name: one for one in (bus(), service("dispatcher"), slow)},
    )
    starting = asyncio.ensure_future(supervisor.start())
    while not starting.done():
        if begun.exists():
            past_s = clock.monotonic_s()
            clock.advance(min(1.0, clock_s(supervisor.pids()["manager"], past_s) - past_s))
        await asyncio.sleep(0.001)  # other processes: nothing to await here
    await supervisor.stop()
    error = starting.exception()
    return "" if error is None else f"{type(error).__name__}: {error}"


def hundredfold_cpu_s(pid: int, _: float) -> float:
    """Return the time of a clock on a machine that gives a process a hundredth of a core."""
    return 100 * sum(psutil.Process(pid).cpu_times()[:2])


async def test_child_that_makes_no_progress_is_named(tmp_path: Path) -> None:
    code = "import signal; signal.pause()"

    reason = await started_slowly(tmp_path, code, lambda _, past_s: past_s + 1)

    found = re.match(r"UnavailableError: not ready after (\d+) s: .*manager; see", reason)
    assert found is not None
    assert int(found[1]) >= 60  # of silence; what starts more slowly on a busy machine is before it


async def test_start_goes_on_while_a_child_computes(tmp_path: Path) -> None:
    code = "import time\nwhile time.process_time() < 1.5: pass\n" + READY % FACTS

    assert await started_slowly(tmp_path, code, hundredfold_cpu_s) == ""


async def test_start_of_a_child_that_computes_for_ever_ends_at_the_limit(tmp_path: Path) -> None:
    reason = await started_slowly(tmp_path, "while True: pass", hundredfold_cpu_s, limit_s=150.0)

    assert reason.startswith("UnavailableError: not ready after 15")


async def test_child_that_ignores_term_is_killed(tmp_path: Path) -> None:
    deaf = python("manager", "import signal; signal.signal(15, signal.SIG_IGN); " + READY % FACTS)
    settings = Settings(tmp_path, stop_grace_s=0.05)
    supervisor = Supervisor(settings, ManualClock(), {"bus": bus(), "manager": deaf})
    await supervisor.start()

    await supervisor.stop()

    assert supervisor.pids() == {}


async def test_output_of_children_goes_to_their_logs(tmp_path: Path) -> None:
    talking = python("manager", "print('hello', flush=True); " + READY % FACTS)
    supervisor = make(tmp_path, bus(), talking)

    await supervisor.start()
    await supervisor.stop()

    assert (tmp_path / "log" / "manager.log").read_text() == "hello\n"


async def test_child_whose_start_fails_is_tried_again(tmp_path: Path) -> None:
    clock = ManualClock()
    program = tmp_path / "program"
    code = f"#!{sys.executable}\n{READY % FACTS}\n"
    program.write_text(code)
    program.chmod(0o700)
    command = Command("manager", (str(program),), environment.current(), reports_ready=True)
    supervisor = Supervisor(Settings(tmp_path), clock, {"bus": bus(), "manager": command})
    await supervisor.start()
    before = supervisor.pids()["manager"]

    program.rename(tmp_path / "away")
    os.kill(before, signal.SIGKILL)
    await until(lambda: "manager" not in supervisor.pids())
    (tmp_path / "away").rename(program)
    await until(lambda: "manager" in supervisor.pids(), clock)

    assert supervisor.pids()["manager"] != before
    await supervisor.stop()


async def test_log_that_cannot_be_written_does_not_end_the_watching(tmp_path: Path) -> None:
    structlog.reset_defaults()
    with full_disk() as full:
        configure("supervisor", stream=full)
        clock = ManualClock()
        commands = {"bus": bus(), "manager": service("manager")}
        supervisor = Supervisor(Settings(tmp_path), clock, commands)
        await supervisor.start()
        first = supervisor.pids()["manager"]

        os.kill(first, signal.SIGKILL)
        second = await running_again(supervisor, "manager", first)
        os.kill(second, signal.SIGKILL)
        await until(lambda: supervisor.pids().get("manager", second) != second, clock)

        assert supervisor.pids()["manager"] not in {first, second}
        await supervisor.stop()
    structlog.reset_defaults()


BEATING = """
import os, signal, threading
def beat():
    while not stopped.wait(0.01):
        os.write(int(os.environ["NNI_HEARTBEAT_FD"]), b".")
stopped = threading.Event()
# Blocked, not handled: `pause` would miss a handler's signal that comes just before it.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
threading.Thread(target=beat, daemon=True).start()
os.write(int(os.environ["NNI_HEARTBEAT_FD"]), b".")
os.write(int(os.environ["NNI_READY_FD"]), b'{"ready": true}\\n')
signal.sigwait({signal.SIGUSR1})
stopped.set()
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGSTOP], ids=["silent", "stopped"])
async def test_service_whose_loop_hangs_is_restarted(
    tmp_path: Path, number: signal.Signals
) -> None:
    settings = Settings(tmp_path, hung_after_s=2.0, health_every_s=0.01)
    commands = {"bus": bus(), "manager": python("manager", BEATING)}
    # The clock is advanced: under load a sign may be late by itself, which costs one more restart.
    clock = ManualClock()
    supervisor = Supervisor(settings, clock, commands)
    await supervisor.start()
    before = supervisor.pids()

    with suppress(ProcessLookupError):
        os.kill(before["manager"], number)
    manager = before["manager"]
    await until(lambda: supervisor.pids().get("manager", manager) != manager, clock)

    assert supervisor.pids()["bus"] == before["bus"]
    await supervisor.stop()


async def test_bus_that_answers_no_more_is_restarted(tmp_path: Path) -> None:
    port = free_port()
    settings = Settings(tmp_path, hung_after_s=2.0, health_every_s=0.01)
    clock = ManualClock()
    commands = {"bus": answering_bus(port), "manager": service("manager")}
    supervisor = Supervisor(settings, clock, commands)
    await supervisor.start()
    bus_pid = supervisor.pids()["bus"]
    # One that has not answered yet is left alone: it may be reading its store.
    await until((tmp_path / "answered").exists)

    with suppress(ProcessLookupError):
        os.kill(bus_pid, signal.SIGSTOP)
    await until(lambda: supervisor.pids().get("bus", bus_pid) != bus_pid, clock)

    assert not Path(f"/proc/{bus_pid}").exists()
    await supervisor.stop()
    assert supervisor.pids() == {}


async def test_halted_bus_is_restarted_when_there_is_room(tmp_path: Path) -> None:
    flag = tmp_path / "halted"
    code = (
        f"import os, signal, sys\nif not os.path.exists({str(flag)!r}):\n"
        f"    open({str(flag)!r}, 'w').close()\n"
        "    print('[ERR] JetStream: Critical write error: no space left', flush=True)\n"
        "signal.pause()"
    )
    halting = Command(
        "bus",
        (sys.executable, "-c", code),
        environment.current(),
        reports_ready=False,
        halts=re.compile(rb"[^\n]*Critical write error[^\n]*"),
    )
    settings = Settings(tmp_path, health_every_s=0.01)
    settings.store.mkdir()
    supervisor = Supervisor(
        settings, ManualClock(), {"bus": halting, "manager": service("manager")}
    )
    starting = asyncio.ensure_future(supervisor.start())
    await until(lambda: "bus" in supervisor.pids())
    before = supervisor.pids()["bus"]

    await running_again(supervisor, "bus", before)

    await starting
    assert "Critical write error" in (tmp_path / "log" / "bus.log").read_text()
    await supervisor.stop()


class TakenPort:
    """Port of the bus that another program has taken once."""

    def __init__(self, commands: dict[str, Command]) -> None:
        self.commands: dict[str, Command] | None = commands
        self.lent = 0

    def lend(self) -> None:
        self.lent += 1

    def take_back(self) -> dict[str, Command] | None:
        commands, self.commands = self.commands, None
        return commands


async def test_services_are_restarted_with_the_new_port_of_the_bus(tmp_path: Path) -> None:
    def with_port(port: str) -> dict[str, Command]:
        code = READY % f'{{"ready": true, "port": "{port}"}}'
        # Written by the descriptor: Python buffers a line without its end.
        code = f"import os; os.write(2, b'{port} ');{code}"
        return {"bus": bus(), "manager": python("manager", code)}

    port = TakenPort(with_port("new"))
    supervisor = Supervisor(Settings(tmp_path), ManualClock(), with_port("old"), port)
    await supervisor.start()
    before = supervisor.pids()

    os.kill(before["bus"], signal.SIGKILL)
    await running_again(supervisor, "bus", before["bus"])
    await running_again(supervisor, "manager", before["manager"])

    await until(lambda: (tmp_path / "log" / "manager.log").read_text() == "old new ")
    assert port.lent == 2
    await supervisor.stop()


async def test_child_that_is_not_demanded_does_not_run(tmp_path: Path) -> None:
    demand = asyncio.Event()

    async def demanded() -> None:
        await demand.wait()

    commands = {one.name: one for one in (bus(), service("manager"), service("compressor"))}
    supervisor = Supervisor(
        Settings(tmp_path, start_timeout_s=20.0, stop_grace_s=5.0),
        ManualClock(),
        commands,
        demands={"compressor": demanded},
    )

    facts = await supervisor.start()
    before = set(supervisor.pids())
    demand.set()
    await until(lambda: "compressor" in supervisor.pids())

    assert set(facts) == before == {"bus", "manager"}
    await supervisor.stop()
    assert supervisor.pids() == {}


async def test_child_is_restarted_for_ever_with_growing_delays(tmp_path: Path) -> None:
    clock = ManualClock()
    commands = {"bus": bus(), "manager": service("manager")}
    supervisor = Supervisor(Settings(tmp_path), clock, commands)
    await supervisor.start()
    pid = supervisor.pids()["manager"]
    os.kill(pid, signal.SIGKILL)
    pid = await running_again(supervisor, "manager", pid)  # at once

    for delay_s in (0.1, 0.5, 1.0, 2.0):
        os.kill(pid, signal.SIGKILL)
        await until(lambda: clock.sleepers == 1)
        clock.advance(delay_s / 2)
        assert clock.sleepers == 1
        clock.advance(delay_s / 2)
        pid = await running_again(supervisor, "manager", pid)

    await supervisor.stop()


async def test_children_that_are_ready_at_the_limit_have_started(tmp_path: Path) -> None:
    settings = Settings(tmp_path, start_limit_s=0.0)
    supervisor = Supervisor(settings, ManualClock(), {"bus": bus()})

    assert await supervisor.start() == {"bus": {}}

    await supervisor.stop()


async def test_bus_reads_its_configuration_again_if_it_runs(tmp_path: Path) -> None:
    code = (
        "import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {1}); open('begun', 'w');"
        "signal.sigwait({1}); open('reloaded', 'w'); signal.pause()"
    )
    supervisor = make(tmp_path, python("bus", code, reports_ready=False))
    supervisor.reload_bus()
    await supervisor.start()
    await until((tmp_path / "begun").exists)

    supervisor.reload_bus()

    await until((tmp_path / "reloaded").exists)
    assert "bus" in supervisor.pids()
    await supervisor.stop()


async def test_bus_that_has_halted_is_shown_until_its_disk_can_be_written(tmp_path: Path) -> None:
    code = (
        "import os, signal\nif not os.path.exists('halted'):\n"
        "    open('halted', 'w').close()\n    print('it halts', flush=True)\nsignal.pause()"
    )
    halting = replace(python("bus", code, reports_ready=False), halts=re.compile(rb"it halts"))
    settings = Settings(tmp_path, health_every_s=0.01)
    settings.store.touch()  # a file, in which nothing can be written
    supervisor = Supervisor(settings, ManualClock(), {"bus": halting})
    await supervisor.start()
    before = supervisor.pids()["bus"]

    await until(lambda: has_halted(settings.store))
    assert supervisor.pids()["bus"] == before
    settings.store.unlink()
    settings.store.mkdir()

    await running_again(supervisor, "bus", before)
    assert not has_halted(settings.store)
    await supervisor.stop()


async def test_bus_is_stopped_after_the_services_and_nothing_stays_open(tmp_path: Path) -> None:
    writes_pid = (
        "import os, signal; open('new', 'w').write(str(os.getpid()));"
        "os.rename('new', 'bus.pid'); signal.pause()"
    )
    looks = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {15})
while not os.path.exists("bus.pid"):
    pass
os.write(int(os.environ["NNI_READY_FD"]), b'{"ready": true}\\n')
signal.sigwait({15})
os.kill(int(open("bus.pid").read()), 0)
print("the bus runs")
"""
    before = len(list(Path("/proc/self/fd").iterdir()))
    supervisor = make(
        tmp_path, python("bus", writes_pid, reports_ready=False), python("manager", looks)
    )
    await supervisor.start()

    await supervisor.stop()

    assert (tmp_path / "log" / "manager.log").read_text() == "the bus runs\n"
    assert len(list(Path("/proc/self/fd").iterdir())) == before

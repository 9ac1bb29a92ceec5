import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.adapters.process_server import ProcessServer
from svc_trial_runner.adapters.process_table import identity_of
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.ports import LaunchError, StarterEndedError, UnfitTrialError
from tests.support.manual_timers import ManualTimers

WAIT_S = 30.0
TIME_LIMIT_S = 12.5
"""A limit that only `pass_time` and `ManualTimers` let pass."""

PRELUDE = """
import json, os, socket, sys
control = socket.socket(fileno=int(sys.argv[1]))
def send(**message): control.send(json.dumps(message).encode())
def receive(): return json.loads(control.recv(262144))
"""


def pass_time(monkeypatch: pytest.MonkeyPatch, duration_s: float) -> None:
    """Set the clock of the running loop forward."""
    loop = asyncio.get_running_loop()
    earlier = loop.time
    monkeypatch.setattr(loop, "time", lambda: earlier() + duration_s)


class Gone:
    """Callback that counts the servers that accept no more starts."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.count = 0

    def __call__(self, _server: ProcessServer) -> None:
        self.count += 1
        self.happened.set()


def server(folder: Path, script: str, **timeouts_s: Any) -> tuple[ProcessServer, Gone]:
    """Start a scripted server; return its client and the `on_gone` callback."""
    path = folder / "server.py"
    path.write_text(PRELUDE + script)
    gone = Gone()
    command = [sys.executable, "-ISE", str(path), "{fd}"]
    made = ProcessServer(command, {}, warm=True, on_gone=gone, **timeouts_s)
    return made, gone


async def test_refused_start_is_an_error_with_the_reason(tmp_path: Path) -> None:
    made, _ = server(tmp_path, "send(event='refused', id=receive()['id'], reason='no')\nreceive()")

    with pytest.raises(LaunchError, match="no"):
        await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    made.close()


async def test_server_that_ends_fails_its_starts_and_is_gone(tmp_path: Path) -> None:
    made, gone = server(tmp_path, "receive()")

    with pytest.raises(LaunchError, match="ended"):
        await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    assert gone.count == 1
    assert made.gone
    with pytest.raises(LaunchError, match="ended"):
        await made.start("b", {}, (1, 2))
    made.close()


async def test_unanswered_start_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = server(tmp_path, "receive(); receive()", start_timeout_s=TIME_LIMIT_S)
    starting = asyncio.ensure_future(made.start("a", {}, (1, 2)))
    await asyncio.sleep(0)

    pass_time(monkeypatch, TIME_LIMIT_S)

    with pytest.raises(LaunchError, match=r"no answer within 12\.5 s"):
        await asyncio.wait_for(starting, WAIT_S)

    made.close()


async def test_start_without_an_answer_does_not_end_with_any_process(tmp_path: Path) -> None:
    made, _ = server(tmp_path, "receive(); receive()")
    assert made.ends_with([])
    starting = asyncio.ensure_future(made.start("a", {}, (1, 2)))
    await asyncio.sleep(0)

    assert not made.ends_with([made.identity.pid])

    made.close()
    with pytest.raises(LaunchError):
        await asyncio.wait_for(starting, WAIT_S)


async def test_each_start_has_its_own_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = server(tmp_path, "import time; time.sleep(600)", start_timeout_s=3600)
    first = asyncio.ensure_future(made.start("a", {}, (1, 2)))
    await asyncio.sleep(0)
    pass_time(monkeypatch, 1800)
    second = asyncio.ensure_future(made.start("b", {}, (1, 2)))
    await asyncio.sleep(0)

    pass_time(monkeypatch, 1800)
    with pytest.raises(LaunchError, match="no answer"):
        await asyncio.wait_for(first, WAIT_S)
    assert not second.done()
    pass_time(monkeypatch, 1800)
    with pytest.raises(LaunchError, match="no answer"):
        await asyncio.wait_for(second, WAIT_S)

    assert made.running == 0
    made.close()


async def test_start_that_comes_after_its_time_out_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = (
        "receive(); first, second = os.pipe(); pid = os.fork()\n"
        "if not pid:\n    os.setsid(); os.write(second, b'x'); os.close(second)\n"
        "    import signal; signal.pause()\n"
        "os.read(first, 1); receive()\n"
        "send(event='started', id='a', pid=pid, start_time=1)\n"
        "os.waitpid(pid, 0); send(event='exited', id='b', pid=1, status=9); receive()"
    )
    made, _ = server(tmp_path, child, start_timeout_s=TIME_LIMIT_S)
    late = asyncio.ensure_future(made.start("a", {}, (1, 2)))
    await asyncio.sleep(0)
    pass_time(monkeypatch, TIME_LIMIT_S)
    with pytest.raises(LaunchError, match="no answer"):
        await asyncio.wait_for(late, WAIT_S)

    with pytest.raises(LaunchError, match="before it began"):
        await asyncio.wait_for(made.start("b", {}, (1, 2)), WAIT_S)

    made.close()


async def test_death_of_a_generation_rejects_the_starts_it_had_received(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = ManualTimers(monkeypatch, TIME_LIMIT_S)
    script = "receive(); send(event='dropped', module='', reason='status 9'); receive()"
    made, _ = server(tmp_path, script, takeover_timeout_s=TIME_LIMIT_S)
    starting = asyncio.ensure_future(made.start("a", {}, (1, 2)))
    await asyncio.wait_for(timers.wait_pending(), WAIT_S)

    timers.fire()

    with pytest.raises(LaunchError, match="no answer"):
        await asyncio.wait_for(starting, WAIT_S)

    made.close()


@pytest.mark.parametrize(("status", "known"), [(9, None), (3 << 8, 3 << 8), (0, 0)])
async def test_orphan_that_was_killed_has_an_unknown_end(
    tmp_path: Path, status: int, known: int | None
) -> None:
    made, _ = server(
        tmp_path, "send(event='started', id=receive()['id'], pid=4711, start_time=1)\nreceive()"
    )
    process = await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    made.orphan_ended(4712, 0)
    assert not process.ended.done()
    made.orphan_ended(4711, status)

    assert await asyncio.wait_for(process.ended, WAIT_S) == known
    assert made.running == 0
    made.close()


async def test_unfit_server_takes_no_more_but_its_trials_go_on(tmp_path: Path) -> None:
    made, gone = server(
        tmp_path,
        "send(event='started', id=receive()['id'], pid=4711, start_time=1)\n"
        "send(event='unfit', reason='x')\nreceive()\n",
    )
    process = await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)
    await asyncio.wait_for(gone.happened.wait(), WAIT_S)

    assert made.gone
    assert not process.ended.done()
    with pytest.raises(LaunchError, match="ended"):
        await made.start("b", {}, (1, 2))
    made.close()


async def test_starts_beyond_the_room_of_the_socket_wait_and_none_is_lost(
    tmp_path: Path,
) -> None:
    made, _ = server(
        tmp_path,
        "while True:\n    send(event='started', id=receive()['id'], pid=4711, start_time=1)\n",
    )
    padding = {"environment": {"X": "x" * 50_000}}
    starts = [made.start(f"t{number}", padding, (1, 2)) for number in range(40)]

    processes = await asyncio.wait_for(asyncio.gather(*starts), WAIT_S)

    assert len(processes) == 40
    made.close()


async def test_message_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    made, _ = server(tmp_path, "receive()")

    with pytest.raises(LaunchError, match="variables"):
        await made.start("a", {"environment": {"X": "x" * 300_000}}, (1, 2))

    made.close()


MESSAGE_LIMIT_BYTES = 256 * 1024


def start_of_bytes(count: int) -> dict[str, str]:
    """Return the fields of a start of `a` whose message has so many bytes."""
    empty = len(json.dumps({"op": "start", "id": "a", "padding": ""}))
    return {"padding": "x" * (count - empty)}


async def test_message_is_sent_up_to_the_limit(tmp_path: Path) -> None:
    made, _ = server(
        tmp_path, "send(event='started', id=receive()['id'], pid=4711, start_time=1)\nreceive()"
    )

    with pytest.raises(UnfitTrialError, match="must have less than 262144 bytes, got 262145"):
        await made.start("a", start_of_bytes(MESSAGE_LIMIT_BYTES + 1), (1, 2))
    longest = made.start("a", start_of_bytes(MESSAGE_LIMIT_BYTES), (1, 2))
    process = await asyncio.wait_for(longest, WAIT_S)

    assert process.identity == ProcessIdentity(4711, 1)
    assert process.warm
    made.close()


async def test_missing_interpreter_is_an_error() -> None:
    before = open_descriptors()
    with pytest.raises(LaunchError, match="no-such-python"):
        ProcessServer(["/no-such-python", "{fd}"], {}, warm=True, on_gone=lambda _server: None)
    assert open_descriptors() <= before


async def test_no_descriptors_are_left_open(tmp_path: Path) -> None:
    before = open_descriptors()
    made, _ = server(tmp_path, "receive()")
    made.close()

    assert open_descriptors() <= before


async def test_starts_that_wait_for_room_fail_with_the_server_and_leave_no_descriptors(
    tmp_path: Path,
) -> None:
    before = open_descriptors()
    made, _ = server(tmp_path, "import time; time.sleep(600)\n")
    padding = {"environment": {"X": "x" * 50_000}}
    starts = [asyncio.ensure_future(made.start(f"t{n}", padding, (1, 2))) for n in range(40)]
    await asyncio.sleep(0)

    made.close()

    outcomes = await asyncio.gather(*starts, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StarterEndedError}
    assert open_descriptors() <= before


async def test_start_of_a_server_that_has_died_is_not_queued(tmp_path: Path) -> None:
    made, _ = server(tmp_path, "")
    os.waitid(os.P_PID, made.identity.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not run yet
    before = open_descriptors()

    starting = asyncio.ensure_future(made.start("a", {}, (1, 2)))
    await asyncio.sleep(0)  # sent, and the end of the server not yet read

    assert open_descriptors() <= before
    with pytest.raises(LaunchError, match="ended"):
        await asyncio.wait_for(starting, WAIT_S)


def open_descriptors() -> set[Path]:
    """Return those of this process; a garbage collection may close some of earlier tests."""
    return set(Path("/proc/self/fd").iterdir())


ONE_TRIAL = """
send(event='started', id=receive()['id'], pid=4711, start_time=1)
receive()
send(event='exited', id='a', status=768)
receive()
"""


async def test_trial_belongs_to_its_server_until_its_end(tmp_path: Path) -> None:
    made, _ = server(tmp_path, ONE_TRIAL)
    process = await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)
    assert (made.running, made.trial_pids()) == (1, [4711])
    assert made.ends_with([4711, 4712])
    assert not made.ends_with([4712])

    made.send({"op": "go on"})

    assert await asyncio.wait_for(process.ended, WAIT_S) == 768
    assert (made.running, made.trial_pids()) == (0, [])
    made.close()


async def test_start_that_was_refused_or_never_began_is_no_trial_of_the_server(
    tmp_path: Path,
) -> None:
    script = (
        "send(event='refused', id=receive()['id'], reason='no')\n"
        "send(event='exited', id=receive()['id'], status=0)\nreceive()"
    )
    made, _ = server(tmp_path, script)

    for reason in ("no", "it ended before it began to run"):
        with pytest.raises(LaunchError, match=reason):
            await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)
        assert made.running == 0

    made.close()


async def test_server_has_the_identity_of_its_process(tmp_path: Path) -> None:
    made, _ = server(tmp_path, "receive()")

    assert made.identity == identity_of(made.identity.pid)
    assert made.identity.start_time > 0
    made.close()


async def test_closed_server_has_ended_once_and_leaves_no_process(tmp_path: Path) -> None:
    ends: list[ProcessIdentity] = []
    made, gone = server(tmp_path, "receive()", on_end=ends.append)
    assert not made.retired_by_us

    made.close()
    made.close()

    assert (made.retired_by_us, made.gone, gone.count) == (True, True, 0)
    assert ends == [made.identity]
    assert identity_of(made.identity.pid) is None  # not even a zombie
    with pytest.raises(StarterEndedError):
        await made.start("a", {}, (1, 2))


async def test_server_that_is_to_quit_ends_by_itself(tmp_path: Path) -> None:
    ended: asyncio.Future[ProcessIdentity] = asyncio.get_running_loop().create_future()
    script = "while receive() != {'op': 'quit'}: pass"
    made, gone = server(tmp_path, script, on_end=ended.set_result)

    made.quit()

    assert (made.retired_by_us, made.gone, gone.count) == (True, True, 1)
    assert await asyncio.wait_for(ended, WAIT_S) == made.identity
    made.quit()
    assert gone.count == 1


async def test_server_that_is_unfit_twice_is_gone_once(tmp_path: Path) -> None:
    ended = asyncio.Event()
    script = "send(event='unfit', reason='x'); send(event='unfit', reason='y')"
    made, gone = server(tmp_path, script, on_end=lambda _: ended.set())

    await asyncio.wait_for(ended.wait(), WAIT_S)

    assert (gone.count, made.retired_by_us) == (1, False)


async def test_module_that_is_not_preloaded_limits_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a generation that has died may have lost starts."""
    timers = ManualTimers(monkeypatch, TIME_LIMIT_S)
    script = (
        "receive(); send(event='dropped', module='numpy', reason='threads')\n"
        "send(event='started', id='a', pid=4711, start_time=1); receive()"
    )
    made, _ = server(tmp_path, script, takeover_timeout_s=TIME_LIMIT_S)

    process = await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    assert not timers.pending
    assert process.identity.pid == 4711
    made.close()


async def test_start_request_has_its_fields_beside_the_name(tmp_path: Path) -> None:
    made, _ = server(
        tmp_path, "send(event='refused', id='a', reason=json.dumps(receive()))\nreceive()"
    )

    with pytest.raises(LaunchError) as refused:
        await asyncio.wait_for(made.start("a", {"argv": ["x"], "cwd": "/"}, (1, 2)), WAIT_S)

    request = {"op": "start", "id": "a", "argv": ["x"], "cwd": "/"}
    assert json.loads(str(refused.value)) == request
    made.close()


async def test_output_and_errors_of_a_trial_are_not_mixed_up(tmp_path: Path) -> None:
    made, _ = server(
        tmp_path,
        "data, numbers, _, _ = socket.recv_fds(control, 262144, 3)\n"
        "for number, text in zip(numbers, (b'output', b'errors'), strict=True):\n"
        "    os.write(number, text)\n"
        "send(event='started', id='a', pid=4711, start_time=1)\nreceive()",
    )
    pipes = [os.pipe(), os.pipe()]

    await asyncio.wait_for(made.start("a", {}, (pipes[0][1], pipes[1][1])), WAIT_S)

    assert [os.read(reader, 100) for reader, _ in pipes] == [b"output", b"errors"]
    made.close()
    for numbers in pipes:
        for number in numbers:
            os.close(number)


REPORTS_ITS_PROCESS = """
receive()
words = [os.getcwd(), os.getsid(0) == os.getpid(), os.environ.get("ONLY"), "PATH" in os.environ]
send(event='refused', id='a', reason=json.dumps([*words, os.readlink("/proc/self/fd/0")]))
receive()
"""


async def test_server_has_a_session_and_an_environment_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text(PRELUDE + REPORTS_ITS_PROCESS)
    command = [sys.executable, "-ISE", str(path), "{fd}"]
    made = ProcessServer(command, {"ONLY": "1"}, warm=False, on_gone=lambda _server: None)

    with pytest.raises(LaunchError) as refused:
        await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    assert json.loads(str(refused.value)) == ["/", True, "1", False, os.devnull]
    made.close()


@pytest.mark.parametrize("warm", [True, False])
async def test_trial_is_as_warm_as_its_server(tmp_path: Path, *, warm: bool) -> None:
    path = tmp_path / "server.py"
    path.write_text(
        f"{PRELUDE}send(event='started', id=receive()['id'], pid=4711, start_time=5)\nreceive()"
    )
    command = [sys.executable, "-ISE", str(path), "{fd}"]
    made = ProcessServer(command, {}, warm=warm, on_gone=lambda _server: None)

    process = await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    assert (process.warm, process.identity) == (warm, ProcessIdentity(4711, 5))
    made.close()


async def test_trials_of_a_server_that_has_ended_have_an_unknown_end(tmp_path: Path) -> None:
    made, _ = server(
        tmp_path,
        "send(event='started', id=receive()['id'], pid=4711, start_time=1)\nreceive()",
    )
    process = await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    made.send({"op": "go on"})

    assert await asyncio.wait_for(process.ended, WAIT_S) is None
    assert made.running == 0
    made.close()


async def test_start_is_given_up_exactly_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = server(tmp_path, "receive(); receive()", start_timeout_s=TIME_LIMIT_S)
    loop = asyncio.get_running_loop()
    begin_s = loop.time()
    with monkeypatch.context() as clock:
        clock.setattr(loop, "time", lambda: begin_s)
        starting = asyncio.ensure_future(made.start("a", {}, (1, 2)))
        await asyncio.sleep(0)
        clock.setattr(loop, "time", lambda: begin_s + TIME_LIMIT_S)
        for _ in range(5):
            await asyncio.sleep(0)

    assert starting.done()
    assert isinstance(starting.exception(), LaunchError)
    made.close()


async def test_starts_that_have_waited_for_room_leave_no_descriptors(tmp_path: Path) -> None:
    made, _ = server(
        tmp_path,
        "while True:\n    send(event='started', id=receive()['id'], pid=4711, start_time=1)\n",
    )
    before = open_descriptors()
    padding = {"environment": {"X": "x" * 50_000}}
    starts = [made.start(f"t{number}", padding, (1, 2)) for number in range(40)]

    await asyncio.wait_for(asyncio.gather(*starts), WAIT_S)

    assert open_descriptors() <= before
    made.close()


async def test_trial_that_has_started_after_a_takeover_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = ManualTimers(monkeypatch, TIME_LIMIT_S)
    script = (
        "receive(); send(event='dropped', module='', reason='status 9'); receive()\n"
        "send(event='started', id='a', pid=4711, start_time=1); receive()"
    )
    made, _ = server(tmp_path, script, takeover_timeout_s=TIME_LIMIT_S)
    starting = asyncio.ensure_future(made.start("a", {}, (1, 2)))
    await asyncio.wait_for(timers.wait_pending(), WAIT_S)
    made.send({"op": "go on"})
    process = await asyncio.wait_for(starting, WAIT_S)

    timers.fire()

    assert made.trial_pids() == [4711]
    assert not process.ended.done()
    made.close()


async def test_message_does_not_overtake_those_that_wait_for_room(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "room")
    script = f"""
numbers = [receive()["number"]]
open({str(tmp_path / "room")!r}, "w").close()
while (message := receive())["op"] != "start":
    numbers.append(message["number"])
send(event="refused", id="a", reason=json.dumps(numbers))
receive()
"""
    made, _ = server(tmp_path, script)
    for number in range(20):  # more than the socket takes
        made.send({"op": "x", "number": number, "padding": "x" * 50_000})
    (tmp_path / "room").read_bytes()  # the loop must not run yet

    made.send({"op": "x", "number": 20})
    with pytest.raises(LaunchError) as refused:
        await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    assert json.loads(str(refused.value)) == list(range(21))
    made.close()

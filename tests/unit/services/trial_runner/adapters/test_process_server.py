import asyncio
import sys
from pathlib import Path

import pytest

from svc_trial_runner.adapters.process_server import ProcessServer
from svc_trial_runner.ports import LaunchError

WAIT_S = 5.0

PRELUDE = """
import json, os, socket, sys
control = socket.socket(fileno=int(sys.argv[1]))
def send(**message): control.send(json.dumps(message).encode())
def receive(): return json.loads(control.recv(262144))
"""


class Gone:
    """Hears that a server takes no more starts."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.count = 0

    def __call__(self, _server: ProcessServer) -> None:
        self.count += 1
        self.happened.set()


def server(folder: Path, script: str, **timeouts_s: float) -> tuple[ProcessServer, Gone]:
    """Start a made-up server; give it and what hears that it is gone."""
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


async def test_swallowed_start_is_given_up(tmp_path: Path) -> None:
    made, _ = server(tmp_path, "receive(); receive()", start_timeout_s=0.05)

    with pytest.raises(LaunchError, match="no answer"):
        await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    made.close()


async def test_start_that_comes_after_it_was_given_up_is_killed(tmp_path: Path) -> None:
    child = (
        "receive(); first, second = os.pipe(); pid = os.fork()\n"
        "if not pid:\n    os.setsid(); os.write(second, b'x'); os.close(second)\n"
        "    import signal; signal.pause()\n"
        "os.read(first, 1); receive()\n"
        "send(event='started', id='a', pid=pid, start_time=1)\n"
        "os.waitpid(pid, 0); send(event='exited', id='b', pid=1, status=9); receive()"
    )
    made, _ = server(tmp_path, child, start_timeout_s=0.05)
    with pytest.raises(LaunchError, match="no answer"):
        await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    with pytest.raises(LaunchError, match="before it began"):
        await asyncio.wait_for(made.start("b", {}, (1, 2)), WAIT_S)

    made.close()


async def test_death_of_a_generation_gives_up_what_it_had_swallowed(tmp_path: Path) -> None:
    script = "receive(); send(event='dropped', module='', reason='status 9'); receive()"
    made, _ = server(tmp_path, script, takeover_timeout_s=0.05)

    with pytest.raises(LaunchError, match="no answer"):
        await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    made.close()


@pytest.mark.parametrize(("status", "told"), [(9, None), (3 << 8, 3 << 8), (0, 0)])
async def test_orphan_that_was_killed_has_an_unknown_end(
    tmp_path: Path, status: int, told: int | None
) -> None:
    made, _ = server(
        tmp_path, "send(event='started', id=receive()['id'], pid=4711, start_time=1)\nreceive()"
    )
    process = await asyncio.wait_for(made.start("a", {}, (1, 2)), WAIT_S)

    made.orphan_ended(4712, 0)
    assert not process.ended.done()
    made.orphan_ended(4711, status)

    assert await asyncio.wait_for(process.ended, WAIT_S) == told
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
        "import time; time.sleep(0.2)\n"
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


async def test_missing_interpreter_is_said() -> None:
    with pytest.raises(LaunchError, match="no-such-python"):
        ProcessServer(["/no-such-python", "{fd}"], {}, warm=True, on_gone=lambda _server: None)


async def test_no_descriptors_are_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    made, _ = server(tmp_path, "receive()")
    made.close()

    assert len(list(Path("/proc/self/fd").iterdir())) == before

import asyncio
import json
import os
import socket
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from svc_common.code_user import CodeUser
from svc_trial_runner.adapters.trial_sockets import UnixTrialSockets, remove_abandoned
from svc_trial_runner.domain.channel import REPLY_OK, CheckpointRequest, Report, reply
from svc_trial_runner.ports import NextTrial, WaitingProcess

WAIT_S = 30.0


class Session:
    """`TrialSession` that records its reports."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.pids: list[int] = []
        self.checkpoints: list[CheckpointRequest] = []
        self.answer: asyncio.Future[bytes] | None = None
        self.keeps = True
        self.waiting: list[WaitingProcess] = []
        self.asked = asyncio.Event()

    def wait_for_next(self, process: WaitingProcess) -> bool:
        if self.keeps:
            self.waiting.append(process)
            self.asked.set()
        return self.keeps

    def greet(self) -> bytes:
        return reply(trial="aaaaa")

    def parameters(self) -> bytes:
        return reply(parameters={"x": 1})

    def report(self, report: Report, pid: int) -> bytes | asyncio.Future[bytes]:
        self.reports.append(report)
        self.pids.append(pid)
        return self.answer or REPLY_OK

    def save_checkpoint(self, request: CheckpointRequest) -> bytes | asyncio.Future[bytes]:
        self.checkpoints.append(request)
        return self.answer or REPLY_OK


class Caller:
    """Trial side of a connection."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(WAIT_S)
        self.file = self.socket.makefile("rb")

    def send(self, *requests: Any) -> None:
        self.socket.sendall(b"".join(json.dumps(r).encode() + b"\n" for r in requests))

    async def answer(self) -> Any:
        line = await asyncio.to_thread(self.file.readline)
        return json.loads(line) if line else None

    def close(self) -> None:
        self.file.close()
        self.socket.close()


HELLO = {"op": "hello", "token": "secret", "pid": 7}
REPORT = {"op": "report", "type": "FINAL", "value": 1}


@pytest_asyncio.fixture
async def sockets() -> AsyncIterator[UnixTrialSockets]:
    made = UnixTrialSockets()
    yield made
    made.close()


@pytest.fixture
def session(sockets: UnixTrialSockets) -> Session:
    made = Session()
    sockets.admit("secret", made)
    return made


async def test_requests_sent_ahead_are_answered_in_order(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO, {"op": "parameters"}, REPORT)

    answers = [await caller.answer() for _ in range(3)]

    assert answers == [
        {"ok": True, "trial": "aaaaa"},
        {"ok": True, "parameters": {"x": 1}},
        {"ok": True},
    ]
    assert session.reports[0].value == 1
    assert session.pids == [7]
    caller.close()


async def test_there_is_no_second_set_of_parameters(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO, *({"op": "parameters", "parameter_index": index} for index in (0, 1)))

    answers = [await caller.answer() for _ in range(3)]

    assert [answer.get("parameters") for answer in answers[1:]] == [{"x": 1}, None]
    assert answers[2]["ok"]
    caller.close()


async def test_wrong_token_is_refused_and_disconnected(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send({**HELLO, "token": "guess"}, REPORT)

    assert (await caller.answer())["ok"] is False
    assert await caller.answer() is None
    assert session.reports == []
    caller.close()


async def test_caller_without_hello_is_disconnected(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(REPORT)

    assert "hello" in (await caller.answer())["error"]
    assert await caller.answer() is None
    caller.close()


async def test_wrong_request_leaves_the_connection_usable(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO, {"op": "dance"}, REPORT)

    answers = [await caller.answer() for _ in range(3)]

    assert [answer["ok"] for answer in answers] == [True, False, True]
    caller.close()


async def test_endless_line_is_disconnected(sockets: UnixTrialSockets, session: Session) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO)
    await caller.answer()

    def flood() -> None:
        try:
            for _ in range(40):
                caller.socket.sendall(b"x" * 64_000)
        except OSError:
            return  # disconnected while sending

    await asyncio.to_thread(flood)
    line = await asyncio.to_thread(_line_or_nothing, caller)

    assert line == b"" or b"at most" in line
    caller.close()


async def test_line_of_a_metric_of_a_megabyte_fits_and_one_byte_more_is_refused(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO)
    await caller.answer()

    await asyncio.to_thread(caller.socket.sendall, b"x" * 1_004_096)
    fits = sockets.catch_up("secret")
    caller.socket.sendall(b"x")

    assert fits
    assert not sockets.catch_up("secret")
    caller.close()


def _line_or_nothing(caller: Caller) -> bytes:
    try:
        return caller.file.readline()
    except OSError:
        return b""


async def test_catching_up_reads_the_messages_of_a_dead_trial(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO, *[REPORT] * 500)
    caller.close()

    assert not sockets.catch_up("secret")
    assert len(session.reports) == 500


async def test_catching_up_returns_whether_a_connection_is_open(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO, REPORT)
    quiet = asyncio.Event()

    assert sockets.catch_up("secret")
    sockets.when_quiet("secret", quiet.set)
    caller.close()
    await asyncio.wait_for(quiet.wait(), WAIT_S)

    assert not sockets.catch_up("secret")


async def test_slow_answer_holds_back_the_next_and_the_end(
    sockets: UnixTrialSockets, session: Session
) -> None:
    session.answer = asyncio.get_running_loop().create_future()
    caller = Caller(sockets.path)
    caller.send(HELLO, REPORT, {"op": "parameters"})
    caller.socket.shutdown(socket.SHUT_WR)
    assert await caller.answer() == {"ok": True, "trial": "aaaaa"}
    assert sockets.catch_up("secret")

    session.answer.set_result(REPLY_OK)

    assert await caller.answer() == {"ok": True}
    assert await caller.answer() == {"ok": True, "parameters": {"x": 1}}
    assert await caller.answer() is None
    assert not sockets.catch_up("secret")
    caller.close()


async def test_dismissed_trial_is_disconnected_and_refused(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO)
    await caller.answer()

    sockets.dismiss("secret")
    sockets.dismiss("secret")  # a second time changes nothing
    late = Caller(sockets.path)
    late.send(HELLO)

    assert await caller.answer() is None
    assert (await late.answer())["ok"] is False
    caller.close()
    late.close()


async def test_quiet_of_a_dismissed_trial_is_not_announced(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO)
    await caller.answer()
    calls: list[int] = []
    sockets.when_quiet("secret", lambda: calls.append(1))

    sockets.dismiss("secret")

    assert await caller.answer() is None
    assert calls == []
    caller.close()


async def test_caller_that_does_not_read_does_not_fill_the_memory(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO)

    def ask() -> int:
        caller.socket.settimeout(0.2)
        sent = 0
        try:
            for _ in range(200_000):
                caller.send({"op": "parameters"})
                sent += 1
        except TimeoutError:
            pass
        return sent

    sent = await asyncio.to_thread(ask)
    assert sent < 200_000
    caller.socket.settimeout(WAIT_S)

    answers = [await caller.answer() for _ in range(100)]

    assert answers[0] == {"ok": True, "trial": "aaaaa"}
    assert answers[99] == {"ok": True, "parameters": {"x": 1}}
    caller.close()


async def test_caller_that_reads_again_is_read_again(
    sockets: UnixTrialSockets, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = reply(parameters={"x": "a" * 100_000})
    monkeypatch.setattr(session, "parameters", lambda: large)
    caller = Caller(sockets.path)
    caller.send(HELLO, *[{"op": "parameters"}] * 20)  # the replies are more than a socket holds

    answers = [await caller.answer() for _ in range(21)]
    caller.send(REPORT)

    assert answers[20]["parameters"]["x"] == "a" * 100_000
    assert await caller.answer() == {"ok": True}
    caller.close()


async def test_path_fits_and_is_private(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()

    for runtime in (None, tmp_path, deep):
        made = UnixTrialSockets(runtime)
        assert len(os.fsencode(made.path)) <= 107
        assert Path(made.path).parent.stat().st_mode & 0o077 == 0
        made.close()
        assert not Path(made.path).parent.exists()


@pytest.mark.parametrize(("length", "beside"), [(83, True), (84, False)])
async def test_socket_is_in_the_runtime_directory_if_its_path_has_107_bytes_at_most(
    length: int, *, beside: bool
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        runtime = Path(short) / ("x" * (length - len(short) - 1))
        runtime.mkdir()
        made = UnixTrialSockets(runtime)
        path = made.path
        made.close()

    assert len(str(runtime)) == length
    assert path.startswith(f"{runtime}/") is beside
    assert len(os.fsencode(path)) <= 107


async def test_folders_of_killed_agents_are_removed_and_others_stay(tmp_path: Path) -> None:
    running = UnixTrialSockets(tmp_path)
    killed = tmp_path / "nni-0123abcd"
    killed.mkdir()
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(killed / "trial.sock"))
    dead.close()
    others = [tmp_path / "nni-0123abcde", tmp_path / "nni-4567abcd", tmp_path / "nni-abcdef01"]
    others[0].mkdir()
    others[1].mkdir()  # of an agent that is just starting
    others[2].symlink_to(killed)

    made = UnixTrialSockets(tmp_path)

    assert not killed.exists()
    assert Path(running.path).exists()
    assert others[0].exists()
    assert others[1].exists()
    assert others[2].is_symlink()
    made.close()
    running.close()


async def test_folder_of_an_agent_killed_while_it_started_is_removed(tmp_path: Path) -> None:
    killed = tmp_path / "nni-0123abcd"
    killed.mkdir()
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(killed / "trial.part"))
    dead.close()

    made = UnixTrialSockets(tmp_path)

    assert not killed.exists()
    made.close()


async def test_other_files_under_the_name_of_a_starting_socket_stay(tmp_path: Path) -> None:
    folder = tmp_path / "nni-0123abcd"
    folder.mkdir()
    (folder / "trial.part").touch()

    remove_abandoned(tmp_path, "nni-")

    assert (folder / "trial.part").exists()


class NeighbourStarts(CodeUser):
    """Account that is admitted at the moment at which another agent of the machine starts."""

    def admit_to_socket(self, folder: Path, path: str) -> None:
        remove_abandoned(folder.parent, "nni-")
        super().admit_to_socket(folder, path)


async def test_an_agent_that_starts_leaves_those_that_start_beside_it(tmp_path: Path) -> None:
    sockets = UnixTrialSockets(tmp_path, NeighbourStarts())

    assert Path(sockets.path).is_socket()
    sockets.close()


async def test_a_socket_has_no_name_when_its_connections_close(tmp_path: Path) -> None:
    sockets = UnixTrialSockets(tmp_path)
    sockets.admit("secret", Session())
    caller = Caller(sockets.path)
    caller.send(HELLO)
    assert await caller.answer()
    remaining: list[Path] = []
    sockets.when_quiet("secret", lambda: remaining.extend(tmp_path.iterdir()))

    sockets.close()

    assert remaining == []
    caller.close()


# the next trial

NEXT = {"op": "next"}


async def waiting(caller: Caller, session: Session) -> WaitingProcess:
    """Let a caller ask for the next trial; return what the agent has of it."""
    caller.send(HELLO, NEXT)
    await caller.answer()
    await asyncio.wait_for(session.asked.wait(), WAIT_S)
    return session.waiting[-1]


def second(sockets: UnixTrialSockets, output: int, token: str = "second") -> NextTrial:
    """Admit a second trial; return it as it is handed over."""
    sockets.admit(token, Session())
    return NextTrial(token, "/code", {"NNI_TRIAL_JOB_ID": "b"}, frozenset(), output, output)


async def test_process_that_waits_gets_the_next_trial_with_its_output(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    process = await waiting(caller, session)
    reader, writer = os.pipe()

    accepted = process.hand_over(second(sockets, writer))
    line, descriptors, _, _ = await asyncio.to_thread(socket.recv_fds, caller.socket, 10_000, 2)
    for number in descriptors:
        os.write(number, b"output")
        os.close(number)
    caller.send({"op": "parameters"})

    assert process.pid == os.getpid()
    assert json.loads(line)["next"]["environment"] == {"NNI_TRIAL_JOB_ID": "b"}
    assert os.read(reader, 100) == b"outputoutput"
    assert await asyncio.wait_for(accepted, WAIT_S)
    assert await caller.answer() == {"ok": True, "parameters": {"x": 1}}
    assert sockets.catch_up("second")
    os.close(reader)
    os.close(writer)
    caller.close()


async def test_connection_that_waits_is_not_closed_with_the_last_trial(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    process = await waiting(caller, session)

    assert not sockets.catch_up("secret")
    sockets.dismiss("secret")
    process.release()

    assert await caller.answer() == {"ok": True, "next": None}
    assert await caller.answer() is None
    caller.close()


async def test_process_that_is_not_kept_is_answered_at_once(
    sockets: UnixTrialSockets, session: Session
) -> None:
    session.keeps = False
    caller = Caller(sockets.path)
    caller.send(HELLO, NEXT, REPORT)

    answers = [await caller.answer() for _ in range(3)]

    assert answers[1:] == [{"ok": True, "next": None}, {"ok": True}]
    caller.close()


def test_token_of_the_next_trial_is_in_no_text() -> None:
    trial = NextTrial("secret", "/trial", {}, frozenset(), 1, 2)

    assert "secret" not in repr(trial)


async def test_trial_that_is_not_admitted_is_not_handed_over(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    process = await waiting(caller, session)

    accepted = process.hand_over(NextTrial("unknown", "/code", {}, frozenset(), 1, 1))

    assert accepted.done()
    assert not accepted.result()
    process.release()
    assert await caller.answer() == {"ok": True, "next": None}
    caller.close()


async def test_process_that_has_ended_takes_no_trial(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    process = await waiting(caller, session)
    caller.close()

    assert not await asyncio.wait_for(process.hand_over(second(sockets, 1)), WAIT_S)
    process.release()  # nothing happens


async def test_process_that_ends_without_a_request_has_not_taken_the_trial(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    process = await waiting(caller, session)

    accepted = process.hand_over(second(sockets, 1))
    caller.close()

    assert not await asyncio.wait_for(accepted, WAIT_S)
    assert not sockets.catch_up("second")


async def test_request_before_the_reply_with_the_next_trial_breaks_the_channel(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    await waiting(caller, session)

    caller.send(REPORT)

    assert "before its reply" in (await caller.answer())["error"]
    assert await caller.answer() is None
    assert session.reports == []
    caller.close()


async def test_output_and_errors_of_the_next_trial_are_not_mixed_up(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    process = await waiting(caller, session)
    sockets.admit("second", Session())
    pipes = [os.pipe(), os.pipe()]
    writers = [writer for _, writer in pipes]
    trial = NextTrial("second", "/code", {"A": "1"}, frozenset({"B"}), writers[0], writers[1])

    process.hand_over(trial)
    line, descriptors, _, _ = await asyncio.to_thread(socket.recv_fds, caller.socket, 10_000, 2)
    for number, text in zip(descriptors, (b"output", b"errors"), strict=True):
        os.write(number, text)
        os.close(number)

    assert [os.read(reader, 100) for reader, _ in pipes] == [b"output", b"errors"]
    assert json.loads(line)["next"] == {
        "cwd": "/code",
        "environment": {"A": "1"},
        "unset": ["B"],
    }
    for numbers in pipes:
        for number in numbers:
            os.close(number)
    caller.close()


async def test_checkpoint_reaches_the_session_of_its_trial(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO, {"op": "checkpoint", "step": 3})

    answers = [await caller.answer() for _ in range(2)]

    assert answers[1] == {"ok": True}
    assert session.checkpoints == [CheckpointRequest(3)]
    caller.close()


async def test_second_hello_is_refused_and_the_connection_goes_on(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO, HELLO, REPORT)

    answers = [await caller.answer() for _ in range(3)]

    assert [answer["ok"] for answer in answers] == [True, False, True]
    assert "already" in answers[1]["error"]
    caller.close()


async def test_trial_that_ends_without_reading_its_replies_has_ended(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(HELLO, REPORT)
    assert sockets.catch_up("secret")

    caller.close()

    assert not sockets.catch_up("secret")
    assert len(session.reports) == 1


async def test_each_connection_of_a_trial_is_served_and_the_last_one_makes_it_quiet(
    sockets: UnixTrialSockets, session: Session
) -> None:
    callers = [Caller(sockets.path), Caller(sockets.path)]
    for pid, caller in enumerate(callers):
        caller.send({**HELLO, "pid": pid}, REPORT)
    assert sockets.catch_up("secret")
    calls: list[int] = []
    sockets.when_quiet("secret", lambda: calls.append(1))

    callers[0].close()
    one_left = sockets.catch_up("secret"), list(calls)
    callers[1].close()
    none_left = sockets.catch_up("secret"), list(calls)

    assert sorted(session.pids) == [0, 1]
    assert (one_left, none_left) == ((True, []), (False, [1]))


async def test_request_after_a_broken_one_is_not_handled(
    sockets: UnixTrialSockets, session: Session
) -> None:
    caller = Caller(sockets.path)
    caller.send(REPORT, HELLO, REPORT)

    assert (await caller.answer())["ok"] is False
    assert await caller.answer() is None
    assert session.reports == []
    caller.close()


async def test_socket_is_in_a_short_folder_if_that_for_temporary_files_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    made = UnixTrialSockets()
    path = made.path
    made.close()

    assert path.startswith(f"/tmp/nni-{os.getuid()}-")
    assert list(deep.iterdir()) == []


async def test_folders_of_killed_agents_among_temporary_files_are_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        names = [f"nni-{os.getuid()}-0123abcd", "nni-9999999-0123abcd"]
        for name in names:
            (Path(short) / name).mkdir()
            dead = socket.socket(socket.AF_UNIX)
            dead.bind(f"{short}/{name}/trial.sock")
            dead.close()

        made = UnixTrialSockets()
        left = [(Path(short) / name).exists() for name in names]
        path = made.path
        made.close()

    assert path.startswith(f"{short}/nni-{os.getuid()}-")
    assert left == [False, True]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_folder_of_another_user_stays(tmp_path: Path) -> None:
    folder = tmp_path / "nni-0123abcd"
    folder.mkdir()
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(folder / "trial.sock"))
    dead.close()
    os.chown(folder, 12345, -1)

    remove_abandoned(tmp_path, "nni-")

    assert folder.exists()

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from nni.trial.channel import SocketTrialChannel, TrialChannelError
from tests.support.trial_agent import TOKEN, TrialAgent


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[TrialAgent]:
    with TrialAgent(tmp_path, {"x": 1}) as it:
        yield it


@pytest.fixture
def channel(agent: TrialAgent) -> Iterator[SocketTrialChannel]:
    channel = SocketTrialChannel(str(agent.path), TOKEN)
    yield channel
    channel.close()


FORKS = """\
import os, sys, threading
from nni.trial.channel import SocketTrialChannel

channel = SocketTrialChannel(sys.argv[1], sys.argv[2])

def in_forked_child(work):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
"""A process of its own, since this one may have threads that a fork would break."""


@contextmanager
def process_that_forks(
    agent: TrialAgent, script: str
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    """Yield a process with a `channel` that may fork, its input and output; wait for its end."""
    command = [sys.executable, "-W", "ignore", "-c", FORKS + script, str(agent.path), TOKEN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process, process.stdin, process.stdout


def test_connection_is_greeted_once(agent: TrialAgent, channel: SocketTrialChannel) -> None:
    channel.parameters(0)
    channel.report("FINAL", 1)

    assert agent.greetings == [os.getpid()]


def test_nothing_is_connected_before_the_first_request(
    agent: TrialAgent, channel: SocketTrialChannel
) -> None:
    assert agent.greetings == []


def test_report_is_held_by_the_agent_when_it_returns(
    agent: TrialAgent, channel: SocketTrialChannel
) -> None:
    for value in range(100):
        channel.report("PERIODICAL", value)
        assert agent.metrics[-1] == ("PERIODICAL", value, value)


def test_large_metric_passes(agent: TrialAgent, channel: SocketTrialChannel) -> None:
    value = "x" * 999_998

    channel.report("FINAL", value)

    assert agent.metrics == [("FINAL", 0, value)]


def test_large_parameters_pass(agent: TrialAgent, channel: SocketTrialChannel) -> None:
    agent.parameters = [list(range(200_000))]

    assert channel.parameters(0) == agent.parameters[0]


def test_wrong_token_is_an_error(agent: TrialAgent) -> None:
    channel = SocketTrialChannel(str(agent.path), "guess")

    with pytest.raises(TrialChannelError, match="token"):
        channel.parameters(0)


def test_refused_report_raises_and_the_next_one_passes(
    agent: TrialAgent, channel: SocketTrialChannel
) -> None:
    agent.refusal = "disk full"
    with pytest.raises(TrialChannelError, match="disk full"):
        channel.report("FINAL", 1)

    agent.refusal = None
    channel.report("FINAL", 2)

    assert agent.metrics == [("FINAL", 0, 2)]


def test_absent_agent_is_named(tmp_path: Path) -> None:
    channel = SocketTrialChannel(str(tmp_path / "none.sock"), TOKEN)

    with pytest.raises(TrialChannelError, match=r"no agent answers at .*none\.sock"):
        channel.report("FINAL", 1)


def test_agent_that_goes_away_is_an_error(tmp_path: Path) -> None:
    with TrialAgent(tmp_path) as agent:
        channel = SocketTrialChannel(str(agent.path), TOKEN)
        channel.report("PERIODICAL", 1)
        agent.hang_up()

        with pytest.raises(TrialChannelError, match="agent of this trial"):
            channel.report("PERIODICAL", 2)


def test_threads_share_a_connection_and_lose_nothing(
    agent: TrialAgent, channel: SocketTrialChannel
) -> None:
    def work(first: int) -> None:
        for value in range(first, first + 50):
            channel.report("PERIODICAL", value)

    threads = [threading.Thread(target=work, args=[50 * n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(value for _, _, value in agent.metrics) == list(range(200))
    assert len(agent.greetings) == 1


def test_forked_child_gets_a_connection_of_its_own(agent: TrialAgent) -> None:
    script = (
        "channel.report('PERIODICAL', 1)\n"
        "code = in_forked_child(lambda: channel.report('PERIODICAL', 2))\n"
        "channel.report('PERIODICAL', 3)\n"
        "sys.exit(code)\n"
    )

    with process_that_forks(agent, script) as (process, _, _):
        pass

    assert process.returncode == 0
    assert [value for _, _, value in agent.metrics] == [1, 2, 3]
    assert len(set(agent.greetings)) == 2


def test_child_forked_while_a_report_is_under_way_can_report(agent: TrialAgent) -> None:
    script = (
        "thread = threading.Thread(target=channel.report, args=['PERIODICAL', 1])\n"
        "thread.start()\n"
        "sys.stdin.readline()\n"
        "code = in_forked_child(lambda: channel.parameters(0))\n"  # the lock was taken at the fork
        "os.close(1)\n"
        "thread.join()\n"
        "sys.exit(code)\n"
    )
    agent.hold.clear()

    with process_that_forks(agent, script) as (process, to_it, from_it):
        assert agent.held.wait(60)
        to_it.write(b"fork\n")
        to_it.flush()
        from_it.read()  # until it closes its output, when the forked child has ended
        agent.hold.set()

    assert process.returncode == 0
    assert [value for _, _, value in agent.metrics] == [1]


def test_signal_handler_can_report_in_the_middle_of_a_report(
    agent: TrialAgent, channel: SocketTrialChannel
) -> None:
    def report_from_handler(*_: object) -> None:
        agent.hold.set()
        channel.report("FINAL", "from handler")

    def interrupt() -> None:
        agent.held.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    previous = signal.signal(signal.SIGUSR1, report_from_handler)
    thread = threading.Thread(target=interrupt)
    try:
        agent.hold.clear()
        thread.start()
        channel.report("PERIODICAL", 1)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, previous)

    assert sorted(agent.metrics) == [("FINAL", 0, "from handler"), ("PERIODICAL", 0, 1)]


def test_interrupted_report_does_not_confuse_the_next(
    agent: TrialAgent, channel: SocketTrialChannel
) -> None:
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    def interrupt() -> None:
        agent.held.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    previous = signal.signal(signal.SIGUSR1, stop)
    thread = threading.Thread(target=interrupt)
    try:
        agent.hold.clear()
        thread.start()
        with pytest.raises(Stop):
            channel.report("PERIODICAL", 1)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, previous)
        agent.hold.set()

    assert channel.parameters(0) == {"x": 1}

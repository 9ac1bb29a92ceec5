from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

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


def in_forked_child(work: Callable[[], object]) -> int:
    """Run something in a forked child and return its exit code; 1 if it raised."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


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


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_child_gets_a_connection_of_its_own(
    agent: TrialAgent, channel: SocketTrialChannel
) -> None:
    channel.report("PERIODICAL", 1)

    code = in_forked_child(lambda: channel.report("PERIODICAL", 2))
    channel.report("PERIODICAL", 3)

    assert code == 0
    assert [value for _, _, value in agent.metrics] == [1, 2, 3]
    assert len(set(agent.greetings)) == 2


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_child_forked_while_a_report_is_under_way_can_report(
    agent: TrialAgent, channel: SocketTrialChannel
) -> None:
    agent.hold.clear()
    thread = threading.Thread(target=channel.report, args=["PERIODICAL", 1])
    thread.start()
    assert agent.held.wait(10)

    code = in_forked_child(lambda: channel.parameters(0))  # the lock was taken at the fork
    agent.hold.set()
    thread.join()

    assert code == 0
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

"""Signals that end a process while it starts, or waits for, an experiment."""

import os
import signal
import threading

import pytest

from nni.experiment.exit_signals import check_on_exit, deferred_interrupt, signals_as_exit
from tests.support.hang_up import hang_up_is_not_ignored

__all__ = ["hang_up_is_not_ignored"]  # a fixture


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def interrupted(times: int, done: list[str]) -> None:
    with deferred_interrupt():
        for _ in range(times):
            send(signal.SIGINT)
        done.append("rest of the block")


def test_interrupt_is_raised_after_the_block() -> None:
    done: list[str] = []

    with pytest.raises(KeyboardInterrupt):
        interrupted(1, done)

    assert done == ["rest of the block"]


def test_interrupt_that_the_block_has_handled_is_not_raised() -> None:
    with deferred_interrupt() as interruption:
        send(signal.SIGINT)
        interruption.came = False

    assert not interruption.came


def test_second_interrupt_is_raised_at_once() -> None:
    done: list[str] = []

    with pytest.raises(KeyboardInterrupt):
        interrupted(2, done)

    assert done == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_that_exits_is_deferred_like_an_interrupt(number: signal.Signals) -> None:
    done: list[str] = []

    def exited() -> None:
        with signals_as_exit(), deferred_interrupt():
            send(number)
            done.append("rest of the block")

    with pytest.raises(SystemExit) as ended:
        exited()

    assert done == ["rest of the block"]
    assert ended.value.code == 128 + number


def test_signal_that_ends_the_process_by_itself_is_not_deferred() -> None:
    before = signal.getsignal(signal.SIGTERM)

    with deferred_interrupt():
        within = signal.getsignal(signal.SIGTERM)

    assert within is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_exits_with_the_code_of_a_shell(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    with pytest.raises(SystemExit) as ended, signals_as_exit():
        send(number)

    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is before


def test_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    try:
        with signals_as_exit():
            send(signal.SIGHUP)
            ignored = signal.getsignal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert ignored is signal.SIG_IGN


def test_other_threads_leave_signals_alone() -> None:
    handlers: list[object] = []

    def look() -> None:
        with signals_as_exit(), deferred_interrupt():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert handlers == [signal.getsignal(signal.SIGTERM)]


def test_fate_of_an_experiment_is_one_of_two() -> None:
    check_on_exit("leave")
    with pytest.raises(ValueError, match="got 'no'"):
        check_on_exit("no")

"""JSON lines between dispatcher and host."""

import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nni.hpo.host.command_pipe import CommandPipe
from nni.hpo.json_value import plain_value


class Ends:
    """The dispatcher's ends of the pipes."""

    def __init__(self) -> None:
        host_in, self.commands = os.pipe()
        self.answers, host_out = os.pipe()
        self.pipe = CommandPipe(host_in, host_out)
        self._fds = [host_in, host_out, self.answers]

    def tell(self, *commands: dict[str, Any]) -> None:
        os.write(self.commands, b"".join(json.dumps(c).encode() + b"\n" for c in commands))

    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in os.read(self.answers, 1 << 16).splitlines()]

    def close(self) -> None:
        for descriptor in self._fds:
            os.close(descriptor)


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.close()


def test_commands_come_in_order_until_the_pipe_is_closed(ends: Ends) -> None:
    ends.tell({"position": [1, 0]}, {"position": [1, 1]})
    os.close(ends.commands)

    assert [command["position"] for command in ends.pipe.commands()] == [[1, 0], [1, 1]]


def test_command_in_pieces_is_put_together(ends: Ends) -> None:
    text = json.dumps({"position": [1, 0], "data": "x" * 200_000}).encode() + b"\n"

    def write() -> None:
        view = memoryview(text)
        while view:
            view = view[os.write(ends.commands, view) :]
        os.close(ends.commands)

    writer = threading.Thread(target=write)
    writer.start()
    (command,) = ends.pipe.commands()
    writer.join()

    assert len(command["data"]) == 200_000


def test_completion_is_reported_once_for_a_batch_of_commands(ends: Ends) -> None:
    ends.tell(*({"position": [1, index]} for index in range(50)))
    os.close(ends.commands)

    list(ends.pipe.commands())

    reported = [message["done"] for message in ends.messages()]
    assert reported[-1] == [1, 49]
    assert len(reported) < 50


def test_eager_pipe_tells_of_every_command(ends: Ends) -> None:
    ends.pipe.eager = True
    ends.tell(*({"position": [1, index]} for index in range(5)))
    os.close(ends.commands)

    list(ends.pipe.commands())

    assert [message["done"] for message in ends.messages()] == [[1, index] for index in range(5)]


def test_numbers_that_are_no_json_survive(ends: Ends) -> None:
    ends.pipe.write({"value": [float("inf"), float("-inf")]})

    assert ends.messages() == [{"value": [float("inf"), float("-inf")]}]


def test_numpy_values_become_plain(ends: Ends) -> None:
    numpy = pytest.importorskip("numpy")

    ends.pipe.write({"value": [numpy.float64(0.5), numpy.int64(3), numpy.arange(2)]})

    assert ends.messages() == [{"value": [0.5, 3, [0, 1]]}]


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="must be JSON-like, got object"):
        plain_value(object())


def test_idle_time_comes_once_after_a_crowd_of_commands(ends: Ends) -> None:
    came: list[dict[str, Any]] = []
    times: list[int] = []

    def idle() -> None:
        times.append(len(came))
        os.close(ends.commands)

    ends.pipe.idle = idle
    ends.tell({"position": [1, 0]}, {"position": [1, 1]})

    came.extend(ends.pipe.commands())

    assert len(came) == 2
    assert len(times) == 1


def test_eager_pipe_is_never_idle(ends: Ends) -> None:
    called: list[bool] = []
    ends.pipe.eager = True
    ends.pipe.idle = lambda: called.append(True)
    ends.tell({"position": [1, 0]})
    os.close(ends.commands)

    list(ends.pipe.commands())

    assert called == []


def test_waiting_commands_leave_no_idle_time(ends: Ends) -> None:
    came: list[dict[str, Any]] = []
    times: list[int] = []
    ends.pipe.idle = lambda: times.append(len(came))
    ends.tell({"position": [1, 0]})
    for command in ends.pipe.commands():
        came.append(command)
        if len(came) == 1:
            ends.tell({"position": [1, 1]})
        else:
            os.close(ends.commands)

    assert 1 not in times


def test_ends_of_the_pipes_are_not_inherited_by_children() -> None:
    descriptors = [*os.pipe(), *os.pipe()]
    host_in, host_out = descriptors[0], descriptors[3]
    try:
        for descriptor in (host_in, host_out):
            os.set_inheritable(descriptor, True)

        CommandPipe(host_in, host_out)

        assert [os.get_inheritable(descriptor) for descriptor in (host_in, host_out)] == [False] * 2
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def test_idle_time_comes_without_a_wait_for_more_commands(ends: Ends) -> None:
    rounds = 40
    left = iter(range(1, rounds))

    def idle() -> None:
        number = next(left, None)
        if number is None:
            os.close(ends.commands)
        else:
            ends.tell({"position": [1, number]})

    ends.pipe.idle = idle
    ends.tell({"position": [1, 0]})
    begun_s = time.monotonic()

    came = list(ends.pipe.commands())

    assert len(came) == rounds
    assert time.monotonic() - begun_s < 30  # far more than it needs; a wait of 1 s each takes 40 s

"""Fuzzed lines and messages of other processes: each is parsed or refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_proto.runner.v1 import task_pb2
from svc_dispatcher.adapters.host_lines import output_of
from svc_dispatcher.converters.log_messages import events_of
from svc_manager.adapters.event_file import EventFile, read_records
from svc_manager.converters.notifications import notifications_from
from svc_trial_runner.converters import work_from_payload
from svc_trial_runner.domain.channel import ChannelError, parse_request
from tests.support.fuzzing.effort import cases
from tests.support.fuzzing.json_values import changed, json_values
from tests.support.fuzzing.messages import broken, messages

REQUESTS: Final = [
    {"op": "hello", "token": "e3b0c442", "pid": 4711},
    {"op": "parameters"},
    {"op": "report", "type": "PERIODICAL", "value": 0.71, "sequence": 3},
    {"op": "report", "type": "FINAL", "value": {"default": 0.93, "loss": [1]}},
]
OUTPUTS: Final[list[dict[str, Any]]] = [
    {"done": [3, 0]},
    {"position": [1, 0], "ready": {"lookahead": True, "assesses": False, "provenance": {"a": "b"}}},
    {
        "position": [1, 0],
        "request_id": "1-0",
        "parameters": [[0, {"x": 1}, None]],
        "exhausted": False,
        "deferred": 0,
        "released": ["a"],
    },
    {"position": [1, 2], "stop": "t1"},
    {"position": [1, 2], "late": [[1, {"x": 2}, {}]], "exhausted": True},
    {"position": [1, 2], "failed": {"call": "c", "traceback": "t", "skipped": True}},
    {"position": [1, 2], "diverged": [1, {}, {"x": 1}]},
    {"position": [1, 2], "unbuildable": "why", "traceback": "t"},
]


def lines(valid: list[Any]) -> st.SearchStrategy[bytes]:
    """Draw lines that differ from a valid one in a few places, or arbitrary ones."""
    written = changed(st.sampled_from(valid)).map(lambda data: json.dumps(data).encode())
    nested = st.sampled_from([b"[" * 100_000, b'{"a":' * 100_000, b'{"op":' + b"9" * 5000 + b"}"])
    anything = json_values().map(lambda data: json.dumps(data).encode())
    return written | written.flatmap(broken) | anything | nested | st.binary(max_size=20)


@cases(100)
@given(line=lines(REQUESTS))
def test_a_line_of_a_trial_is_understood_or_refused_in_words(line: bytes) -> None:
    try:
        parse_request(line)
    except ChannelError as error:
        assert str(error)  # noqa: PT017 - most lines raise nothing


@cases(100)
@given(line=lines(OUTPUTS))
def test_a_line_of_a_host_is_understood_or_refused_in_words(line: bytes) -> None:
    try:
        output_of(line)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - most lines raise nothing


@cases(100)
@given(data=st.data())
def test_a_message_for_the_manager_is_understood_or_no_message(data: st.DataObject) -> None:
    whole = data.draw(messages(inbox_pb2.InboxMessage.DESCRIPTOR, {}))
    payload = data.draw(st.just(whole.SerializeToString()) | broken(whole.SerializeToString()))

    try:
        notifications = notifications_from(payload)
    except DecodeError:
        return

    assert isinstance(notifications, list)


@cases(20)
@given(data=st.data())
def test_a_batch_is_understood_by_the_dispatcher_or_no_message(data: st.DataObject) -> None:
    batch = data.draw(messages(event_pb2.EventBatch.DESCRIPTOR, {}))
    assert isinstance(batch, event_pb2.EventBatch)

    positions = [position.place for position, _ in events_of(7, batch)]

    assert positions == sorted(positions)


def write_log(path: Path, payloads: list[bytes]) -> bytes:
    path.unlink(missing_ok=True)
    file = EventFile(path)
    for sequence, payload in enumerate(payloads, 1):
        file.append(sequence, payload)
    file.close()
    return path.read_bytes()


@cases(100)
@given(
    payloads=st.lists(st.binary(max_size=40), max_size=5),
    cut=st.integers(0, 400),
    noise=st.binary(max_size=30),
)
@pytest.mark.usefixtures("folder")
def test_a_torn_file_of_events_gives_its_whole_records_and_goes_on(
    folder: Path, payloads: list[bytes], cut: int, noise: bytes
) -> None:
    path = folder / "events.log"
    whole = write_log(path, payloads)
    path.write_bytes(whole[:cut] + noise)

    try:
        before = list(read_records(path))
    except ValueError:
        assert not (whole[:cut] + noise).startswith(b"NNI events 1\n")
        return
    file = EventFile(path)
    file.append(file.last_sequence + 1, b"next")
    file.close()

    expected = [(n, payload) for n, payload in enumerate(payloads, 1)]
    assert before[: len(expected)] == expected[: len(before)]
    assert list(read_records(path)) == [*before, (len(before) + 1, b"next")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@cases(60)
@given(data=st.data())
def test_a_task_is_understood_by_the_agent_or_refused_in_words(data: st.DataObject) -> None:
    whole = data.draw(messages(task_pb2.TrialTask.DESCRIPTOR, {})).SerializeToString()
    payload = data.draw(st.just(whole) | broken(whole))

    try:
        work = work_from_payload(payload)
    except (ValueError, LookupError, TypeError) as error:
        assert str(error)  # noqa: PT017 - a right one raises nothing
        return

    assert work.key.attempt >= 1

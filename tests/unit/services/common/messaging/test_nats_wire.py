from collections.abc import Mapping

import pytest

from svc_common.messaging import nats_wire as wire


class Recorder:
    """Collects what a parser calls back."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []
        self.parser = wire.Parser(
            on_message=self._on_message,
            on_info=self._on_info,
            on_ping=lambda: self.seen.append(("ping",)),
            on_pong=lambda: self.seen.append(("pong",)),
            on_error=lambda text: self.seen.append(("error", text)),
        )

    def _on_message(
        self, sid: int, subject: str, reply: str, headers: bytes, payload: bytes
    ) -> None:
        self.seen.append((sid, subject, reply, headers, payload))

    def _on_info(self, info: Mapping[str, object]) -> None:
        self.seen.append(("info", dict(info)))


HEADERS = wire.encode_headers({"Nats-Msg-Id": "7"})
STREAM = (
    b'INFO {"max_payload": 1024}\r\n+OK\r\nPING\r\nPONG\r\n'
    b"MSG a.b 1 5\r\nhello\r\n"
    b"MSG a.b 2 reply.to 2\r\n\r\n\r\n"
    + b"HMSG c 3 %d %d\r\n" % (len(HEADERS), len(HEADERS) + 3)
    + HEADERS
    + b"abc\r\n"
    + b"HMSG c 4 r %d %d\r\n" % (len(HEADERS), len(HEADERS))
    + HEADERS
    + b"\r\n-ERR 'Permissions Violation'\r\n"
)
OPERATIONS: list[tuple[object, ...]] = [
    ("info", {"max_payload": 1024}),
    ("ping",),
    ("pong",),
    (1, "a.b", "", b"", b"hello"),
    (2, "a.b", "reply.to", b"", b"\r\n"),
    (3, "c", "", HEADERS, b"abc"),
    (4, "c", "r", HEADERS, b""),
    ("error", "Permissions Violation"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
def test_operations_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    recorder = Recorder()

    for start in range(0, len(STREAM), size):
        recorder.parser.feed(STREAM[start : start + size])

    assert recorder.seen == OPERATIONS


def test_large_message_in_many_pieces_is_whole() -> None:
    recorder = Recorder()
    payload = bytes(range(256)) * 4096
    stream = b"MSG a 1 %d\r\n" % len(payload) + payload + b"\r\nPING\r\n"

    for start in range(0, len(stream), 65_536):
        recorder.parser.feed(stream[start : start + 65_536])

    assert recorder.seen == [(1, "a", "", b"", payload), ("ping",)]


@pytest.mark.parametrize("line", [b"HELLO\r\n", b"MSG a\r\n", b"MSG a x 5\r\n", b"INFO nope\r\n"])
def test_what_is_not_the_protocol_is_refused(line: bytes) -> None:
    with pytest.raises(wire.ProtocolError):
        Recorder().parser.feed(line)


def test_endless_line_is_refused() -> None:
    with pytest.raises(wire.ProtocolError, match="endless"):
        Recorder().parser.feed(b"x" * 1_100_000)


def test_headers_come_back() -> None:
    headers = {"Nats-Msg-Id": "1", "Nni-Append": "a:b"}

    assert wire.decode_headers(wire.encode_headers(headers)) == headers
    assert wire.status_of(wire.encode_headers(headers)) == ""


def test_status_line_is_understood() -> None:
    block = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 5\r\n\r\n"

    assert wire.status_of(block) == "100"
    assert wire.decode_headers(block) == {
        "Status": "100",
        "Description": "Idle Heartbeat",
        "Nats-Last-Consumer": "5",
    }


def test_publishing_states_all_sizes() -> None:
    assert wire.publish("a", "", b"", b"xy") == b"PUB a 2\r\nxy\r\n"
    assert wire.publish("a", "r", b"", b"") == b"PUB a r 0\r\n\r\n"
    assert wire.publish("a", "r", b"HH", b"xyz") == b"HPUB a r 2 5\r\nHHxyz\r\n"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "'Permissions Violation for Publish to \"nni.Task.a\"'",
            wire.Forbidden("nni.Task.a", to_publish=True),
        ),
        (
            "'Permissions Violation for Subscription to \"nni.>\"'",
            wire.Forbidden("nni.>", to_publish=False),
        ),
        ("'Authorization Violation'", None),
        ("'Permissions Violation'", None),
    ],
)
def test_what_is_forbidden_is_named_as_it_was_sent(text: str, meant: wire.Forbidden | None) -> None:
    assert wire.forbidden(text) == meant

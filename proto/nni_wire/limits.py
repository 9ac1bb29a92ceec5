"""Limits that sender and receiver must agree on."""

from __future__ import annotations

from typing import Final

MESSAGE_LIMIT_BYTES: Final = 8 * 1024 * 1024
"""Largest message on the bus."""

GRPC_MESSAGE_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Largest gRPC message."""

LARGE_REQUEST_LIMIT_BYTES: Final = 20 * 1024 * 1024
"""Largest gRPC request with a search space, or with the results of all trials.

Functions of C decode, copy and encode such a message in one run, up to 50 ms.
"""

INLINE_VALUE_LIMIT_BYTES: Final = 256 * 1024
"""Larger values are stored as blobs, and messages have their hash."""

METRIC_LIMIT_BYTES: Final = 1_000_000
"""Longest JSON text of one reported metric."""

SEARCH_SPACE_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""Longest JSON text of a search space."""

START_LIMIT_S: Final = 300.0
"""Longest start of the services of a machine, while they make progress."""

START_SILENCE_LIMIT_S: Final = 60.0
"""Longest time without progress in a start of the services of a machine."""

START_WAIT_S: Final = START_LIMIT_S + 30.0
"""How long a program waits for the services that it starts: a little more than their supervisor."""

VALUE_DEPTH_LIMIT: Final = 30
"""Deepest nesting of a value.

Protobuf refuses messages nested over 100 deep; a map within a map costs three levels of them, and
the batch, event and field around a value a few more.
"""


def grpc_channel_options() -> list[tuple[str, int]]:
    """Return gRPC options for servers and channels: 64 MiB a message, no shared ports."""
    return [
        ("grpc.max_send_message_length", GRPC_MESSAGE_LIMIT_BYTES),
        ("grpc.max_receive_message_length", GRPC_MESSAGE_LIMIT_BYTES),
        ("grpc.so_reuseport", 0),
    ]

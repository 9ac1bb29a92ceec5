"""Limits that several processes must agree on: sizes and times of the bus."""

from typing import Final

from nni_wire.limits import MESSAGE_LIMIT_BYTES

SERVER_PAYLOAD_LIMIT_BYTES: Final = MESSAGE_LIMIT_BYTES + 64 * 1024
"""`max_payload` of the server: the largest message with room for its headers."""

ACK_WAIT_S: Final = 30.0
"""How long a task stays with an agent that does not renew its hold."""

LOG_LINES_PER_TRIAL: Final = 512
"""Messages of output kept of one trial; each has up to 64 kB."""

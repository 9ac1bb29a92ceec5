"""Sizes that the bus server must be configured with; known to its clients and its supervisor."""

from typing import Final

from nni_wire.limits import MESSAGE_LIMIT_BYTES

SERVER_PAYLOAD_LIMIT_BYTES: Final = MESSAGE_LIMIT_BYTES + 64 * 1024
"""`max_payload` of the server: the largest message with room for its headers."""

LOG_LINES_PER_TRIAL: Final = 512
"""Messages of output kept of one trial; its agent makes them of up to 64 kB."""

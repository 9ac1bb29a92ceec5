"""States of consumers as nats-server writes them, whole and damaged."""

from typing import Final

WHOLE: Final = bytes([22, 2, 20, 20, 25, 25, 2, 200, 1, 21, 21, 0, 22, 22, 3, 0])
"""20 messages acknowledged, 25 delivered, of which two are pending since 100 s."""
READABLE: Final = {
    "empty": b"",
    "whole": WHOLE,
    "nothing pending": bytes([22, 1, 1, 1, 1, 1]),
    "more after it": WHOLE + bytes([1, 2, 3]),
}
DAMAGED: Final = {
    "1 byte": WHOLE[:1],
    "4 bytes": WHOLE[:4],
    "half": WHOLE[: len(WHOLE) // 2],
    "zeros": bytes(len(WHOLE)),
    "version": bytes([22, 3]) + WHOLE[2:],
    "many pending": WHOLE[:6] + bytes([0xFF, 0xFF, 0x7F]) + WHOLE[7:],
    "open end": WHOLE[:-1] + bytes([0x80]),
    "long": WHOLE[:2] + bytes([0x80] * 11) + WHOLE[3:],
}

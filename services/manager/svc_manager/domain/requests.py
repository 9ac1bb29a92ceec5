"""Which request a request id stands for: a repetition is carried out once, another one refused."""

import hashlib
from typing import Final

from svc_common.errors import InvalidArgumentError

_SHOWN_CHARACTERS: Final = 80


def fingerprint(asked: object) -> str:
    """Return a short text that differs between different requests.

    Args:
        asked: values whose `repr` says all that was asked.
    """
    return hashlib.blake2b(repr(asked).encode(), digest_size=8).hexdigest()


def noted(method: str, print_: str) -> str:
    """Return what the state keeps of a request."""
    return f"{method} {print_}".rstrip()


def check_repetition(known: str, request_id: str, method: str, print_: str) -> None:
    """Return if a request is the one that was carried out under its id.

    Args:
        known: what was noted of the one that was carried out.
        request_id: of both.
        method: of this one.
        print_: fingerprint of this one.

    Raises:
        InvalidArgumentError: it is another one.
    """
    known_method, _, known_print = known.partition(" ")
    if method == known_method and known_print in {"", print_}:
        return
    raise InvalidArgumentError(
        "request_id",
        "must name one request only",
        request_id[:_SHOWN_CHARACTERS],
        f"another {known_method} has it; draw a new one for each request",
    )

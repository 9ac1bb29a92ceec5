"""Fingerprints of requests: a repeated request is carried out once.

Another one with its id is refused.
"""

import hashlib
from typing import Final

from svc_common.errors import InvalidArgumentError

CREATE_METHOD: Final = "CreateExperiment"
"""Method of the request that has created an experiment."""
_SHOWN_CHARACTERS: Final = 80
_STEP_BYTES: Final = 512 * 1024
"""Bytes that are hashed at once: a few milliseconds."""


def fingerprint(asked: object) -> str:
    """Return a hash of a request's `repr`, by which a repeated request is recognised.

    Args:
        asked: values whose `repr` holds the whole request.
    """
    return hashlib.blake2b(repr(asked).encode(), digest_size=8).hexdigest()


def fingerprint_of_bytes(content: bytes, *rest: object) -> str:
    """Return `fingerprint((content, *rest))`; large bytes are hashed in steps, for a thread.

    Args:
        content: most of the request.
        *rest: at least one other value of the request.
    """
    # How bytes are quoted depends on all of them, so each piece is shown after the same quotes.
    quotes = b"'" if b"'" in content and b'"' not in content else b"'\""
    shown = repr(quotes)
    digest = hashlib.blake2b(f"({shown[:2]}".encode(), digest_size=8)
    for start in range(0, len(content), _STEP_BYTES):
        piece = repr(quotes + content[start : start + _STEP_BYTES])
        digest.update(piece[len(shown) - 1 : -1].encode())
    digest.update(f"{shown[-1]}, {', '.join(map(repr, rest))})".encode())
    return digest.hexdigest()


def request_record(method: str, digest: str) -> str:
    """Return `method digest`, the text by which the state records a request."""
    return f"{method} {digest}".rstrip()


def check_repetition(known: str, request_id: str, method: str, digest: str) -> None:
    """Raise InvalidArgumentError if a recorded request id comes with another method or content.

    Args:
        known: record of the request that was carried out.
        request_id: of both.
        method: of this request.
        digest: fingerprint of this request.

    Raises:
        InvalidArgumentError: it is another request.
    """
    known_method, _, known_digest = known.partition(" ")
    if method == known_method and known_digest in {"", digest}:
        return
    raise InvalidArgumentError(
        "request_id",
        "must name one request only",
        request_id[:_SHOWN_CHARACTERS],
        f"another {known_method} has it; use a new id for each request",
    )

"""Enrolment of an agent at the TLS front: protocols, invitation word, request and answer.

A machine that is to join a pool has a word, which a person has brought there:

    nni1.<secret>.<fingerprint of the authority>

It reads the authority's certificate (`nni-authority/1`), compares the fingerprint, and enrols over
another connection, whose certificate that authority has signed (`nni-enrol/1`): one line of JSON
each way. Of a word the installation stores the hash of the secret only.
"""

import hashlib
import json
import re
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeVar

from svc_common.errors import InvalidArgumentError

ENROL_PROTOCOL: Final = "nni-enrol/1"
AUTHORITY_PROTOCOL: Final = "nni-authority/1"
"""Protocols of ALPN."""
FRONT_NAME: Final = "nni-front"
"""Name in the certificate of the TLS front, at whatever address a client reaches it."""
MESSAGE_LIMIT_BYTES: Final = 16 * 1024
"""Longest request or answer."""
JOINED: Final = "joined"
"""Platform of agents that have enrolled."""
_WORD: Final = re.compile(r"nni1\.([A-Za-z0-9_-]{32})\.([0-9a-f]{64})\Z")
_SECRET_BYTES: Final = 24
_TEXT_LIMIT: Final = 200
_SLOTS_LIMIT: Final = 10_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EnrolmentWord:
    """Parsed word (code) of an invitation: secret, and fingerprint of the TLS front's authority."""

    secret: str = field(repr=False)
    authority_sha256: str
    """Of the authority's certificate, in hexadecimal digits."""

    @classmethod
    def parse(cls, text: str) -> "EnrolmentWord":
        """Parse an invitation's word; raise InvalidArgumentError, without the text, if malformed.

        Raises:
            InvalidArgumentError: it is no word.
        """
        match = _WORD.match(text.strip())
        if match is None:
            raise InvalidArgumentError(
                "word",
                "must be the line nni1.… that `nnictl runner invite` has printed, complete",
            )
        return cls(match[1], match[2])

    @classmethod
    def new(cls, authority_sha256: str) -> "EnrolmentWord":
        """Return a new random invitation word for the TLS front with this authority."""
        return cls(secrets.token_urlsafe(_SECRET_BYTES), authority_sha256)

    def text(self) -> str:
        """Return the word as the line `nni1.…`, which a person copies to the machine."""
        return f"nni1.{self.secret}.{self.authority_sha256}"


def secret_hash(secret: str) -> str:
    """Return the hash of a secret to store; plain SHA-256, since a secret has 192 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def authority_fingerprint(pem: str) -> str:
    """Return the SHA-256 of a certificate in hexadecimal digits.

    Raises:
        ValueError: the text is no certificate.
    """
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


@dataclass(frozen=True, slots=True)
class EnrolmentRequest:
    """Request of a machine to join a pool: secret, machine id, host name, version, slots."""

    secret: str = field(repr=False)
    pool: str
    machine_id: str
    """Drawn at the first enrolment of a machine and stored in its folder: a second enrolment with
    it is that of the same agent."""
    host_name: str
    version: str
    """Of NNI there."""
    slots: int = 1


@dataclass(frozen=True, slots=True)
class Enrolled:
    """Answer to an enrolment: name and credentials of the new agent."""

    name: str
    bus_user: str
    version: str
    """Of NNI in the installation."""
    bus_password: str = field(repr=False)
    manager_token: str = field(repr=False)
    warning: str = ""
    """What the person who runs it should know; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Answer to an enrolment: why the machine is refused, and a remedy."""

    reason: str
    remedy: str = ""


def request_to_line(request: EnrolmentRequest) -> bytes:
    """Encode an enrolment request as a JSON line."""
    return _line(asdict(request))


def request_from_line(line: bytes) -> EnrolmentRequest:
    """Parse a JSON line to an enrolment request; raise InvalidArgumentError if invalid.

    Raises:
        InvalidArgumentError: the line is none, or a field is missing, too long or out of range.
    """
    fields = _fields(line)
    slots = fields.get("slots", 1)
    if not all(_is_text(value) for name, value in fields.items() if name != "slots"):
        raise InvalidArgumentError(
            "request", f"must have texts of 1 to {_TEXT_LIMIT} printable characters"
        )
    if type(slots) is not int or not 1 <= slots <= _SLOTS_LIMIT:  # True is no number
        raise InvalidArgumentError("slots", f"must be 1 to {_SLOTS_LIMIT}")
    return _built(EnrolmentRequest, fields)


def _is_text(value: object) -> bool:
    """Return whether a value is a printable text that is not empty and within the length limit."""
    return isinstance(value, str) and 0 < len(value) <= _TEXT_LIMIT and value.isprintable()


def answer_to_line(answer: Enrolled | Refused) -> bytes:
    """Encode the answer to an enrolment as a JSON line."""
    return _line(asdict(answer))


def answer_from_line(line: bytes) -> Enrolled | Refused:
    """Parse a JSON line to the answer to an enrolment; raise InvalidArgumentError if invalid.

    Raises:
        InvalidArgumentError: the line is none.
    """
    fields = _fields(line)
    return _built(Refused, fields) if "reason" in fields else _built(Enrolled, fields)


def _line(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _fields(line: bytes) -> Mapping[str, Any]:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError("enrolment", "must be a line of JSON") from error
    if not isinstance(found, Mapping):
        raise InvalidArgumentError("enrolment", "must be a JSON object")
    return found


def _built(kind: type[T], fields: Mapping[str, Any]) -> T:
    try:
        return kind(**fields)
    except TypeError as error:
        raise InvalidArgumentError(
            "enrolment",
            f"must have the fields of {kind.__name__}",
            remedy="install the same version of NNI on both machines",
        ) from error

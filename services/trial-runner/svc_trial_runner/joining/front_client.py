"""Client of the TLS front: reads its authority, and enrols."""

import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

from svc_common.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from svc_trial_runner.enrolment import (
    AUTHORITY_PROTOCOL,
    ENROL_PROTOCOL,
    FRONT_NAME,
    MESSAGE_LIMIT_BYTES,
    Enrolled,
    EnrolmentRequest,
    Refused,
    answer_from_line,
    authority_fingerprint,
    request_to_line,
)

ANSWER_S: Final = 90.0
"""Time limit of an enrolment: the bus may have to read thousands of users again."""
_CONNECT_S: Final = 15.0
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
"""Verification errors of OpenSSL (`X509_V_ERR_…`)."""


def parse_front_address(text: str) -> tuple[str, int]:
    """Return host and port of `https://host:port`.

    Raises:
        InvalidArgumentError: it is none.
    """
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "https" or not parts.hostname or port is None or parts.path not in {"", "/"}:
        raise InvalidArgumentError("address", "must be https://HOST:PORT", text[:200])
    return parts.hostname, port


def read_authority(host: str, port: int, fingerprint: str) -> str:
    """Download the front authority's certificate, return it in PEM; raise unless its SHA-256 fits.

    The connection is not verified; its content is.

    Args:
        host: of the front.
        port: of the front.
        fingerprint: SHA-256 of the certificate, in hexadecimal digits.

    Raises:
        UnavailableError: the front cannot be reached.
        FailedPreconditionError: another server is there.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([AUTHORITY_PROTOCOL])
    received = _exchange(host, port, context, b"", _CONNECT_S)
    try:
        pem = received.decode("ascii")
        found = authority_fingerprint(pem)
    except ValueError as error:
        raise FailedPreconditionError(
            f"the server at {host}:{port} is no TLS front of NNI; compare the address with what "
            "`nnictl runner invite` has printed"
        ) from error
    if found != fingerprint:
        raise FailedPreconditionError(
            f"the server at {host}:{port} has another authority than the word names: the word is "
            "of another installation, or something between the machines poses as it; nothing "
            "secret was sent"
        )
    return pem


def enrol(host: str, port: int, authority: str, request: EnrolmentRequest) -> Enrolled:
    """Enrol at the front, verified by authority; return name and credentials, raise if refused.

    Raises:
        UnavailableError: the front cannot be reached, or does not answer.
        FailedPreconditionError: the front has another certificate, or refuses.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority)
    context.set_alpn_protocols([ENROL_PROTOCOL])
    received = _exchange(host, port, context, request_to_line(request), ANSWER_S)
    if not received:
        raise UnavailableError(f"the front at {host}:{port} did not answer; try again")
    answer = answer_from_line(received)
    if isinstance(answer, Refused):
        remedy = f"; {answer.remedy}" if answer.remedy else ""
        raise FailedPreconditionError(f"{answer.reason}{remedy}")
    return answer


def _exchange(
    host: str, port: int, context: ssl.SSLContext, request: bytes, answer_s: float
) -> bytes:
    """Connect, send a request, and return what is received until the end, or a length limit."""
    try:
        with (
            socket.create_connection((host, port), _CONNECT_S) as plain,
            context.wrap_socket(plain, server_hostname=FRONT_NAME) as secured,
        ):
            secured.settimeout(answer_s)
            secured.sendall(request)
            return _received(secured)
    except ssl.SSLCertVerificationError as error:
        raise FailedPreconditionError(_certificate_words(host, port, error)) from error
    except OSError as error:
        raise UnavailableError(
            f"cannot reach the front at {host}:{port}: {error.strerror or error}; is the address "
            "right, is a firewall between the machines, and does the pool still run?"
        ) from error


def _received(secured: ssl.SSLSocket) -> bytes:
    received = bytearray()
    while len(received) <= MESSAGE_LIMIT_BYTES:
        try:
            piece = secured.recv(MESSAGE_LIMIT_BYTES)
        except ssl.SSLEOFError:
            break
        if not piece:
            break
        received += piece
    return bytes(received)


def _certificate_words(host: str, port: int, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in {_NOT_YET_VALID, _EXPIRED}:
        return (
            f"the certificate of the front at {host}:{port} is not valid at this time: set the "
            f"clock of this machine, or that of the installation ({error.verify_message})"
        )
    return (
        f"the certificate of the server at {host}:{port} is not of the authority that the word "
        f"names: {error.verify_message}"
    )

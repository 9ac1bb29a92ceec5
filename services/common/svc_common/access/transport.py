"""TLS of a process, and the rule where plain text is allowed.

Loopback needs no encryption. Off loopback every connection is encrypted: a service refuses to start
otherwise, unless `NNI_INSECURE=1` explicitly allows plain text.
"""

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import grpc

from svc_common.environment import (
    NNI_INSECURE,
    NNI_TLS_CA_FILE,
    NNI_TLS_CERT_FILE,
    NNI_TLS_CLIENT_CA_FILE,
    NNI_TLS_KEY_FILE,
)
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.logs import get_logger

_PEM_LIMIT_BYTES: Final = 1_000_000
_ENCRYPTED_SCHEMES: Final = frozenset({"https", "rediss", "tls", "wss"})


@dataclass(frozen=True, slots=True)
class Transport:
    """TLS settings of a process: builds contexts; refuses plain text off loopback by default."""

    certificate: Path | None = None
    """PEM certificate chain of this process; None: its servers are not encrypted."""
    key: Path | None = None
    """PEM key of the certificate."""
    client_ca: Path | None = None
    """PEM authority of client certificates. With it, gRPC requires one and HTTP accepts one."""
    ca: Path | None = None
    """PEM authority of the services that are called; with it, calls are encrypted."""
    insecure: bool = False
    """True if plain text off loopback is allowed."""
    server_name: str = ""
    """Name in the certificates of the services that are called, which only `ca` may have signed;
    empty: the certificates have the services' addresses."""
    ports_held: bool = False
    """True if the supervisor holds the ports of gRPC servers, which bind them beside it."""

    @property
    def listens_encrypted(self) -> bool:
        """True if the servers of this process are encrypted."""
        return self.certificate is not None

    def check_listener(self, setting: str, host: str) -> None:
        """Raise if a server on ``host`` would give other machines plain text; warn if allowed.

        Args:
            setting: name of the variable that holds the address, for the message.
            host: name or address.

        Raises:
            FailedPreconditionError: other machines could read the plain text.
        """
        if self.listens_encrypted or is_loopback(host):
            return
        self._require_insecure(
            f"{setting} is {host!r}, which other machines can reach, and nothing is encrypted; set "
            f"{NNI_TLS_CERT_FILE} and {NNI_TLS_KEY_FILE}, listen on 127.0.0.1",
            setting,
            host,
        )

    def check_peer(self, setting: str, host: str, *, encrypted: bool) -> None:
        """Raise if secrets would go to another machine in plain text; warn if that is allowed.

        Raises:
            FailedPreconditionError: secrets would travel in plain text.
        """
        if encrypted or is_loopback(host):
            return
        self._require_insecure(
            f"{setting} names {host!r}, which is another machine, and nothing is encrypted; set "
            f"{NNI_TLS_CA_FILE} or use an encrypted address (tls://, rediss://, https://)",
            setting,
            host,
        )

    def check_url(self, setting: str, url: str | None) -> None:
        """Raise if a URL in a comma-separated list is off loopback and unencrypted, unless allowed.

        Raises:
            FailedPreconditionError: see `check_peer`.
        """
        for part in (url or "").split(","):
            parts = urlsplit(part.strip())
            if parts.hostname:
                encrypted = parts.scheme in _ENCRYPTED_SCHEMES or (
                    parts.scheme == "nats" and self.ca is not None
                )
                self.check_peer(setting, parts.hostname, encrypted=encrypted)

    def _require_insecure(self, complaint: str, setting: str, host: str) -> None:
        if not self.insecure:
            raise FailedPreconditionError(
                f"{complaint}, or set {NNI_INSECURE}=1 to send everything, secrets included, in "
                "plain text"
            )
        get_logger().warning(
            "INSECURE: plain text off loopback, secrets included", setting=setting, host=host
        )

    def grpc_server_credentials(self) -> grpc.ServerCredentials | None:
        """Return gRPC server credentials from the files (mTLS with `client_ca`); None: no TLS.

        Raises:
            InvalidArgumentError: a file cannot be used.
        """
        if self.certificate is None or self.key is None:
            return None
        client_ca = None if self.client_ca is None else _pem(NNI_TLS_CLIENT_CA_FILE, self.client_ca)
        pair = (_pem(NNI_TLS_KEY_FILE, self.key), _pem(NNI_TLS_CERT_FILE, self.certificate))
        self.http_server_context()  # raises if the files do not match; gRPC would only log that
        return grpc.ssl_server_credentials([pair], client_ca, client_ca is not None)

    def grpc_channel_credentials(self) -> grpc.ChannelCredentials | None:
        """Return gRPC channel credentials of `ca` and the own certificate; None: `ca` is unset.

        Raises:
            InvalidArgumentError: a file cannot be used.
        """
        if self.ca is None:
            return None
        own: tuple[bytes | None, bytes | None] = (None, None)
        if self.certificate is not None and self.key is not None:
            own = (_pem(NNI_TLS_KEY_FILE, self.key), _pem(NNI_TLS_CERT_FILE, self.certificate))
        return grpc.ssl_channel_credentials(_pem(NNI_TLS_CA_FILE, self.ca), *own)

    def http_server_context(self) -> ssl.SSLContext | None:
        """Build the TLS context of an HTTP server, with optional client certificates; None: no TLS.

        Raises:
            InvalidArgumentError: a file cannot be used.
        """
        if self.certificate is None or self.key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load_chain(context, self.certificate, self.key)
        if self.client_ca is not None:
            _load_authority(context, NNI_TLS_CLIENT_CA_FILE, self.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL  # a browser may send a token instead
        return context

    def client_context(self) -> ssl.SSLContext:
        """Build a client's TLS context: verifies by `ca` or the system, sends an own certificate.

        Servers are verified against `ca`, or against the authorities of the system; with
        `server_name` against `ca` only.

        Raises:
            InvalidArgumentError: a file cannot be used.
        """
        pinned = self.server_name and self.ca is not None
        context = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if pinned else ssl.create_default_context()
        )
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.ca is not None:
            _load_authority(context, NNI_TLS_CA_FILE, self.ca)
        if self.certificate is not None and self.key is not None:
            _load_chain(context, self.certificate, self.key)
        return context


PLAIN: Final = Transport()
"""Transport of processes on loopback."""


def is_loopback(host: str) -> bool:
    """Return whether ``host`` is a loopback address or `localhost`; no name is looked up."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def names_loopback(url: str) -> bool:
    """Return whether all addresses of ``url`` are loopback; several are separated by commas."""
    return all(is_loopback(urlsplit(part.strip()).hostname or "") for part in url.split(","))


def host_of(address: str) -> str:
    """Return the host of `host:port`, an IPv6 address without brackets; empty without a port."""
    return address.rpartition(":")[0].strip("[]")


def _pem(setting: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_PEM_LIMIT_BYTES)
    except OSError as error:
        raise InvalidArgumentError(
            setting, f"must be a readable file ({error.strerror})", str(path)
        ) from error


def _load_chain(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    _pem(NNI_TLS_CERT_FILE, certificate)
    _pem(NNI_TLS_KEY_FILE, key)
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise InvalidArgumentError(
            NNI_TLS_CERT_FILE,
            f"must be a PEM certificate, and {NNI_TLS_KEY_FILE} its key ({error})",
            str(certificate),
        ) from error


def _load_authority(context: ssl.SSLContext, setting: str, path: Path) -> None:
    _pem(setting, path)
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        raise InvalidArgumentError(
            setting, f"must be a PEM file of certificates ({error})", str(path)
        ) from error

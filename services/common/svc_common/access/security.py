"""Security of a process: its authenticator and its transport, opened from the environment."""

import ctypes
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from svc_common import environment
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.keyring import Keyring
from svc_common.access.transport import PLAIN, Transport, is_loopback
from svc_common.errors import FailedPreconditionError, InvalidArgumentError

_SHORTEST_TOKEN: Final = 16
"""Characters of a token that other machines can try."""
_LOG_FOLDER: Final = "log"
_PR_SET_DUMPABLE: Final = 4


@dataclass(frozen=True, slots=True)
class BusLogin:
    """Which user of the bus this process is."""

    user: str = ""
    """Empty: the bus knows no users, only the installation's token."""
    password: str = field(default="", repr=False)
    tls_first: bool = False
    """Whether the bus speaks TLS from the first byte on."""


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """What protects a process, as its environment says."""

    transport: Transport = PLAIN
    access_file: Path | None = None
    """Callers beside the holder of the installation's token; None: there are none."""
    bus: BusLogin = BusLogin()
    agent_token: str = field(default="", repr=False)
    """Token that all agents show; empty: they show the installation's."""


ON_LOOPBACK: Final = SecuritySettings()
"""Of processes that only this machine can reach."""


def read_security_settings() -> SecuritySettings:
    """Read `NNI_TLS_…`, `NNI_ACCESS_FILE` and `NNI_INSECURE`.

    Raises:
        InvalidArgumentError: a certificate without its key, or the other way round.
    """
    certificate = environment.path(environment.NNI_TLS_CERT_FILE)
    key = environment.path(environment.NNI_TLS_KEY_FILE)
    client_ca = environment.path(environment.NNI_TLS_CLIENT_CA_FILE)
    if (certificate is None) != (key is None):
        missing = environment.NNI_TLS_KEY_FILE if key is None else environment.NNI_TLS_CERT_FILE
        raise InvalidArgumentError(missing, "must be set: a certificate and its key go together")
    if client_ca is not None and certificate is None:
        raise InvalidArgumentError(
            environment.NNI_TLS_CERT_FILE,
            f"must be set where {environment.NNI_TLS_CLIENT_CA_FILE} is",
        )
    return SecuritySettings(
        Transport(
            certificate=certificate,
            key=key,
            client_ca=client_ca,
            ca=environment.path(environment.NNI_TLS_CA_FILE),
            insecure=environment.flag(environment.NNI_INSECURE, default=False),
        ),
        environment.path(environment.NNI_ACCESS_FILE),
        _read_bus_login(),
        environment.text(environment.NNI_RUNNER_TOKEN, ""),
    )


def _read_bus_login() -> BusLogin:
    user = environment.text(environment.NNI_NATS_USER, "")
    first = environment.flag(environment.NNI_NATS_TLS_FIRST, default=False)
    if not user:
        return BusLogin(tls_first=first)
    return BusLogin(user, environment.text(environment.NNI_NATS_PASSWORD), first)


@dataclass(frozen=True, slots=True)
class Guard:
    """What servers of a process need in order to be safe; closed by whoever opened it."""

    authenticator: Authenticator
    transport: Transport = PLAIN
    token_length: int = _SHORTEST_TOKEN

    @classmethod
    def open(cls, settings: SecuritySettings, token: str, home: Path) -> Self:
        """Open the authenticator of a service.

        Args:
            settings: see `read_security_settings`.
            token: secret of the installation.
            home: folder of the installation's state; the audit trail lies below it.

        Raises:
            InvalidArgumentError: the access file cannot be used.
            FailedPreconditionError: the audit trail cannot be written.
        """
        keyring = Keyring(token, settings.access_file, agent_token=settings.agent_token)
        try:
            trail = AuditTrail(home / _LOG_FOLDER)
        except OSError as error:
            raise FailedPreconditionError(
                f"the audit trail cannot be written below {home / _LOG_FOLDER}: {error.strerror}; "
                "a service that cannot say who changed what does not start"
            ) from error
        authenticator = Authenticator(keyring, trail)
        return cls(authenticator, settings.transport, len(token))

    @classmethod
    def of_token(cls, token: str) -> Self:
        """Return the guard of a server on loopback that knows one token only."""
        return cls(Authenticator.of_token(token))

    def check_listener(self, setting: str, host: str) -> None:
        """Return if a server may listen on ``host``.

        Raises:
            FailedPreconditionError: it would not be encrypted.
            InvalidArgumentError: the token could be guessed.
        """
        self.transport.check_listener(setting, host)
        if not is_loopback(host) and self.token_length < _SHORTEST_TOKEN:
            raise InvalidArgumentError(
                environment.NNI_TOKEN,
                f"must have at least {_SHORTEST_TOKEN} characters where other machines can try it",
                remedy="make one with: openssl rand -hex 32",
            )

    def close(self) -> None:
        """Close the authenticator; may be called twice."""
        self.authenticator.close()


def forbid_inspection() -> None:
    """Let no other process of this user read memory or environment of this one, or trace it.

    What is started from here can be looked into again: the kernel's mark ends with `exec`. It
    costs core dumps and debuggers, so it is for processes that user code runs beside and whose
    secrets that code could not read from a file anyway.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)

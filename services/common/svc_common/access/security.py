"""Security of a process: settings from the environment, authenticator and transport."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from nni_wire.folders import AGENTS_ACCESS_FILE
from svc_common import environment
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.keyring import Keyring
from svc_common.access.transport import PLAIN, Transport, is_loopback
from svc_common.errors import FailedPreconditionError, InvalidArgumentError

_SHORTEST_TOKEN: Final = 16
"""Characters of a token that other machines can guess at."""
_LOG_FOLDER: Final = "log"


@dataclass(frozen=True, slots=True)
class BusLogin:
    """Login of this process at NATS: user, password, TLS; owner and data folder of a local bus."""

    user: str = ""
    """Empty: the bus has no users, only the installation's token."""
    password: str = field(default="", repr=False)
    tls_first: bool = False
    """True if the bus speaks TLS from the first byte on."""
    owner: int | None = None
    """Number of the user that runs the bus on this machine; None: any user may."""
    folder: Path | None = None
    """Folder of the data of a bus on this machine; None: it is on another one."""


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """TLS settings, access files, bus login and agents' token of a service process."""

    transport: Transport = PLAIN
    access_file: Path | None = None
    """File of callers beside the holder of the installation's token; None: none."""
    agents_file: Path | None = None
    """File of callers that are agents of the fleet, which the fleet writes; None: none."""
    bus: BusLogin = BusLogin()
    agent_token: str = field(default="", repr=False)
    """Token that all agents use; empty: they use the installation's."""


ON_LOOPBACK: Final = SecuritySettings()
"""Settings of processes that only this machine can reach."""


def read_security_settings() -> SecuritySettings:
    """Return security settings from the environment; raise if certificate and key are not paired.

    Raises:
        InvalidArgumentError: a certificate without its key, a key without its certificate, or an
            authority of client certificates without a certificate.
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
    agents = environment.path(environment.NNI_AGENT_USERS)
    return SecuritySettings(
        Transport(
            certificate=certificate,
            key=key,
            client_ca=client_ca,
            ca=environment.path(environment.NNI_TLS_CA_FILE),
            insecure=environment.flag(environment.NNI_INSECURE, default=False),
            ports_held=environment.flag(environment.NNI_PORTS_HELD, default=False),
        ),
        access_file=environment.path(environment.NNI_ACCESS_FILE),
        bus=_read_bus_login(),
        agent_token=environment.text(environment.NNI_RUNNER_TOKEN, ""),
        agents_file=None if agents is None else agents / AGENTS_ACCESS_FILE,
    )


def _read_bus_login() -> BusLogin:
    user = environment.text(environment.NNI_NATS_USER, "")
    first = environment.flag(environment.NNI_NATS_TLS_FIRST, default=False)
    number = environment.integer(environment.NNI_BUS_OWNER, -1)
    owner = number if number >= 0 else None
    folder = environment.path(environment.NNI_BUS_FOLDER)
    if not user:
        return BusLogin(tls_first=first, owner=owner, folder=folder)
    return BusLogin(user, environment.text(environment.NNI_NATS_PASSWORD), first, owner, folder)


@dataclass(frozen=True, slots=True)
class Guard:
    """Authenticator, TLS settings and check of listeners that all servers of a process share."""

    authenticator: Authenticator
    transport: Transport = PLAIN
    token_length: int = _SHORTEST_TOKEN

    @classmethod
    def open(cls, settings: SecuritySettings, token: str, home: Path) -> Self:
        """Build a service's guard with keyring, audit file and authenticator; the caller closes it.

        Args:
            settings: see `read_security_settings`.
            token: of the installation.
            home: folder of the installation's state; the audit trail is written below it.

        Raises:
            InvalidArgumentError: the access file cannot be used.
            FailedPreconditionError: the audit trail cannot be written.
        """
        keyring = Keyring(
            token,
            settings.access_file,
            agent_token=settings.agent_token,
            agents_file=settings.agents_file,
        )
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
        """Return the guard of a server on loopback that accepts one token."""
        return cls(Authenticator.of_token(token))

    def check_listener(self, setting: str, host: str) -> None:
        """Raise if a server on ``host`` would be unencrypted off loopback, or its token too short.

        Raises:
            FailedPreconditionError: the connections would not be encrypted.
            InvalidArgumentError: the token is so short that it could be guessed.
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

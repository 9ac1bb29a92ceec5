"""Settings of the manager process, read from the environment."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from svc_common import environment
from svc_common.access.security import ON_LOOPBACK, SecuritySettings, read_security_settings
from svc_common.errors import InvalidArgumentError
from svc_common.storage.s3_settings import S3Settings, read_s3_settings
from svc_manager.domain.quota import Quota

N = TypeVar("N", int, float)

_HOME_ROOT: Final = "~/nni-experiments"
NNI_BYTES_TRAVEL: Final = "NNI_BYTES_TRAVEL"
"""Name of a variable: whether clients and agents are on other machines, so that code, checkpoints
and outputs travel through the byte store. Default no."""
NNI_QUOTA: Final = "NNI_QUOTA_BYTES"
"""Name of a variable: maximum bytes that agents and clients may store; 0: no limit."""
NNI_EXPERIMENT_QUOTA: Final = "NNI_EXPERIMENT_QUOTA_BYTES"
"""Name of a variable: maximum bytes that one experiment may store; 0: no limit."""
NNI_BLOB_GRACE: Final = "NNI_BLOB_GRACE_S"
"""Name of a variable: age below which a blob is never garbage."""
_QUOTA_BYTES: Final = 1024**4
_EXPERIMENT_QUOTA_BYTES: Final = 100 * 1024**3
_QUOTA: Final = Quota(_QUOTA_BYTES, _EXPERIMENT_QUOTA_BYTES)
_GRACE_S: Final = 7200.0
"""Many times longer than the time between the storage of a blob and the event that names it."""
_GRACE: Final = timedelta(seconds=_GRACE_S)
NNI_EXPERIMENT_ROOTS: Final = "NNI_EXPERIMENT_ROOTS"
"""Name of a variable: folders, separated by `:`, below which any user may have experiments, beside
`~/nni-experiments`."""
NNI_STOP_ON_TERM: Final = "NNI_STOP_ON_TERM"
"""Name of a variable: whether TERM stops all experiments first. Default no: a machine that shuts
down sends TERM, too, and its experiments go on when the services are up again."""

NNI_PRIVATE: Final = "NNI_PRIVATE"
"""Name of a variable: whether REST demands a token for reading on loopback, too. Default: yes where
other people can log in to this machine."""

NNI_MANAGER_HOST: Final = "NNI_MANAGER_HOST"
"""Name of a variable: host at which other managers reach this one."""
NNI_MANAGER_TLS_NAME: Final = "NNI_MANAGER_TLS_NAME"
"""Name of a variable: name in the certificates of all managers, for calls between them."""
NNI_MANAGER_PUBLIC_GRPC: Final = "NNI_MANAGER_PUBLIC_GRPC"
"""Name of a variable: `[host]:port` of gRPC that clients are given."""
_ALL_INTERFACES: Final = frozenset({"0.0.0.0", "::", "[::]"})  # noqa: S104 - only compared


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one manager process: addresses, bus, stores, folders, access, TLS."""

    home: Path
    """Folder of the installation's state."""
    nats_url: str
    token: str = field(repr=False)
    """Secret of the installation."""
    version: str
    grpc_address: str
    """`host:port` of the gRPC server; port 0: any free port."""
    http_address: str
    """`host:port` of the base web server; port 0: any free port."""
    dispatcher_address: str
    """`host:port` of the dispatcher's gRPC service."""
    compressor_address: str
    """`host:port` of the compressor's gRPC service; empty: there is none."""
    nas_address: str
    """`host:port` of the NAS service's gRPC service; empty: there is none."""
    replicas: int
    """Replicas of each stream of the bus."""
    default_root: Path
    """Folder of experiments whose configuration names none."""
    stop_on_term: bool
    """True if TERM stops all experiments first."""
    s3: S3Settings | None = None
    """Byte store; None: a folder below `home`."""
    redis_url: str | None = field(default=None, repr=False)
    """Store of views, presences and leases; None: views in the byte store, presences in memory, and
    no other manager."""
    host: str = ""
    """Name or address at which other managers reach this one; no two managers have the same ports
    there. Empty: the address it listens on."""
    tls_name: str = ""
    """Name in the certificates of all managers; empty: the host at which each is reached."""
    public_grpc: str = ""
    """`[host]:port` of gRPC for clients, if it is not the one that the server listens on;
    without a host it is that of HTTP. Empty: the address it listens on."""
    security: SecuritySettings = ON_LOOPBACK
    """Access control and TLS."""

    http_descriptor: int = -1
    """Inherited listening socket at `http_address`; -1: none."""
    fleet_descriptor: int = -1
    """Descriptor to write a byte to when a pool needs the fleet; negative: it runs anyway."""
    agent_users: Path | None = None
    """Folder in which a fleet that runs anyway writes who its agents are; None: there is none."""
    front_grpc_address: str = ""
    """`host:port` of gRPC for calls that came through that fleet's TLS front; empty: none."""
    listeners_descriptor: int = -1
    """Inherited socket to the supervisor, which keeps the sockets of experiments; -1: none."""
    private: bool | None = None
    """Whether reading on loopback needs a token; None: as the accounts of the machine demand."""
    quota: Quota = _QUOTA
    """Limits of uploads through this process."""
    bytes_travel: bool = False
    """True if agents share no folders with this manager."""
    blob_grace: timedelta = _GRACE
    """Age below which a blob is never garbage."""
    further_roots: tuple[Path, ...] = ()
    """Folders beside `default_root` below which any user may have experiments."""

    @property
    def has_fleet(self) -> bool:
        """Whether a fleet runs, or is started when it is needed."""
        return self.fleet_descriptor >= 0 or self.agent_users is not None

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders below which any user may have experiments."""
        return (self.default_root, *self.further_roots)

    def reached_at(self, listens_on: str) -> str:
        """Return the host at which others reach a server of this manager that listens on a host."""
        if self.host:
            return self.host
        return environment.host_name() if listens_on in _ALL_INTERFACES else listens_on


def from_environment() -> Settings:
    """Build the manager's settings from environment variables; raise if one is invalid.

    Raises:
        InvalidArgumentError: a setting is missing or invalid.
    """
    return Settings(
        home=environment.home(),
        nats_url=environment.text(environment.NNI_NATS_URL),
        token=environment.text(environment.NNI_TOKEN),
        version=environment.text(environment.NNI_VERSION, "unknown"),
        grpc_address=_address(environment.NNI_MANAGER_GRPC, "127.0.0.1:0"),
        http_address=_address(environment.NNI_MANAGER_HTTP, "127.0.0.1:0"),
        dispatcher_address=_address(environment.NNI_DISPATCHER_GRPC),
        compressor_address=_address(environment.NNI_COMPRESSOR_GRPC, ""),
        nas_address=_address(environment.NNI_NAS_GRPC, ""),
        replicas=environment.integer(environment.NNI_BUS_REPLICAS, 1),
        default_root=Path(_HOME_ROOT).expanduser(),
        stop_on_term=environment.flag(NNI_STOP_ON_TERM, default=False),
        s3=read_s3_settings(),
        redis_url=_redis_url(),
        host=environment.text(NNI_MANAGER_HOST, ""),
        tls_name=environment.text(NNI_MANAGER_TLS_NAME, ""),
        public_grpc=_public_address(environment.text(NNI_MANAGER_PUBLIC_GRPC, "")),
        security=read_security_settings(),
        http_descriptor=environment.integer(environment.NNI_MANAGER_HTTP_FD, -1),
        listeners_descriptor=environment.integer(environment.NNI_LISTENERS_FD, -1),
        fleet_descriptor=environment.integer(environment.NNI_FLEET_DEMAND_FD, -1),
        agent_users=environment.path(environment.NNI_AGENT_USERS),
        front_grpc_address=_address(environment.NNI_MANAGER_FRONT_GRPC, ""),
        private=(environment.flag(NNI_PRIVATE) if environment.text(NNI_PRIVATE, "") else None),
        quota=Quota(
            _at_least_0(NNI_QUOTA, environment.integer(NNI_QUOTA, _QUOTA_BYTES)),
            _at_least_0(
                NNI_EXPERIMENT_QUOTA,
                environment.integer(NNI_EXPERIMENT_QUOTA, _EXPERIMENT_QUOTA_BYTES),
            ),
        ),
        bytes_travel=environment.flag(NNI_BYTES_TRAVEL, default=False),
        blob_grace=timedelta(
            seconds=_at_least_0(NNI_BLOB_GRACE, environment.number(NNI_BLOB_GRACE, _GRACE_S))
        ),
        further_roots=_further_roots(),
    )


def _address(name: str, default: str | None = None) -> str:
    text = environment.text(name, default)
    if text:  # an optional service that is not there has none
        environment.parse_address(name, text)
    return text


def _further_roots() -> tuple[Path, ...]:
    roots = tuple(
        Path(root).expanduser()
        for root in environment.text(NNI_EXPERIMENT_ROOTS, "").split(":")
        if root
    )
    for root in roots:
        if not root.is_absolute() or ".." in root.parts:
            raise InvalidArgumentError(
                NNI_EXPERIMENT_ROOTS, "must be absolute paths, separated by ':'", str(root)
            )
    return roots


def _at_least_0(name: str, number: N) -> N:
    if not number >= 0:  # NaN is refused, too
        raise InvalidArgumentError(name, "must be >= 0", number)
    return number


def _public_address(address: str) -> str:
    _, colon, port = address.rpartition(":")
    if address and not (colon and port.isdigit()):
        raise InvalidArgumentError(NNI_MANAGER_PUBLIC_GRPC, "must be host:port or :port", address)
    return address


def _redis_url() -> str | None:
    url = environment.text(environment.NNI_REDIS_URL, "")
    if not url:
        return None
    if not _is_redis(url):
        # The value is not shown: it may hold a password.
        raise InvalidArgumentError(
            environment.NNI_REDIS_URL, "must be redis[s]://[user:password@]host[:port][/database]"
        )
    password = environment.text(environment.NNI_REDIS_PASSWORD, "")
    parts = urlsplit(url)
    if not password or parts.password:
        return url
    account = f"{parts.username or ''}:{quote(password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{account}@{parts.netloc.rpartition('@')[2]}"))


def _is_redis(url: str) -> bool:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in {"redis", "rediss"} and bool(parts.hostname) and port != 0

"""What the manager is told when it starts."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from svc_common import environment
from svc_common.errors import InvalidArgumentError
from svc_common.storage.s3_settings import S3Settings, read_s3_settings

_HOME_ROOT: Final = "~/nni-experiments"
NNI_STOP_ON_TERM: Final = "NNI_STOP_ON_TERM"
"""Name of a variable: whether TERM stops all experiments first. Default yes; no in a cluster,
where another manager goes on with them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one manager process."""

    home: Path
    """Folder of the installation's state."""
    nats_url: str
    token: str
    """Secret of the installation."""
    version: str
    grpc_address: str
    """`host:port` to serve gRPC on; port 0: a free one."""
    http_address: str
    """`host:port` of the base web server; port 0: a free one."""
    dispatcher_address: str
    """`host:port` of the dispatcher's gRPC service."""
    replicas: int
    """Copies of each stream of the bus."""
    default_root: Path
    """Folder of experiments whose configuration names none."""
    stop_on_term: bool
    """Whether TERM stops all experiments first."""
    s3: S3Settings | None = None
    """Where bytes lie; None: in a folder below `home`."""
    redis_url: str | None = field(default=None, repr=False)
    """Where views and presences lie; None: views beside the bytes, presences nowhere."""


def from_environment() -> Settings:
    """Read the settings from the environment.

    Raises:
        InvalidArgumentError: one is missing or senseless.
    """
    return Settings(
        home=environment.home(),
        nats_url=environment.text(environment.NNI_NATS_URL),
        token=environment.text(environment.NNI_TOKEN),
        version=environment.text(environment.NNI_VERSION, "unknown"),
        grpc_address=environment.text(environment.NNI_MANAGER_GRPC, "127.0.0.1:0"),
        http_address=environment.text(environment.NNI_MANAGER_HTTP, "127.0.0.1:0"),
        dispatcher_address=environment.text(environment.NNI_DISPATCHER_GRPC),
        replicas=environment.integer(environment.NNI_BUS_REPLICAS, 1),
        default_root=Path(_HOME_ROOT).expanduser(),
        stop_on_term=environment.flag(NNI_STOP_ON_TERM, default=True),
        s3=read_s3_settings(),
        redis_url=_redis_url(),
    )


def _redis_url() -> str | None:
    url = environment.text(environment.NNI_REDIS_URL, "-")
    if url == "-":
        return None
    if not _is_redis(url):
        # The value is not shown: it may hold a password.
        raise InvalidArgumentError(
            environment.NNI_REDIS_URL, "must be redis[s]://[user:password@]host[:port][/database]"
        )
    return url


def _is_redis(url: str) -> bool:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in {"redis", "rediss"} and bool(parts.hostname) and port != 0

"""Settings of the S3 server of an installation."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from svc_common import environment
from svc_common.errors import InvalidArgumentError
from svc_common.storage.ports import check_prefix

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")


@dataclass(frozen=True, slots=True)
class S3Settings:
    """Address, account, bucket, prefix and CA file of the S3 server."""

    endpoint: str
    """`http://host:port` or `https://host:port`."""
    access_key: str
    secret_key: str = field(repr=False)
    bucket: str = "nni"
    """Created if missing."""
    prefix: str = ""
    """Prefix of all keys in the bucket, ending with `/`; empty: none."""
    region: str = "us-east-1"
    """Set explicitly, so that the client need not request it."""
    ca_file: Path | None = None
    """PEM authority of the server's certificate, beside those of the system; None: none."""

    @property
    def secure(self) -> bool:
        """True if the connection is encrypted."""
        return self.endpoint.startswith("https://")

    @property
    def address(self) -> str:
        """Endpoint without its scheme: `host:port`, or `host` alone."""
        return urlsplit(self.endpoint).netloc


def read_s3_settings() -> S3Settings | None:
    """Read the S3 settings from `NNI_S3_…` variables and check them; None: no server is set.

    Raises:
        InvalidArgumentError: a variable is missing or malformed.
    """
    endpoint = environment.text(environment.NNI_S3_ENDPOINT, "")
    if not endpoint:
        return None
    return validated(
        S3Settings(
            endpoint=endpoint.rstrip("/"),
            access_key=environment.text(environment.NNI_S3_ACCESS_KEY),
            secret_key=environment.text(environment.NNI_S3_SECRET_KEY),
            bucket=environment.text(environment.NNI_S3_BUCKET, "nni"),
            prefix=_as_prefix(environment.text(environment.NNI_S3_PREFIX, "")),
            region=environment.text(environment.NNI_S3_REGION, "us-east-1"),
            ca_file=environment.path(environment.NNI_TLS_CA_FILE),
        )
    )


def validated(settings: S3Settings) -> S3Settings:
    """Return the S3 settings; raise InvalidArgumentError for a malformed address or bucket.

    Raises:
        InvalidArgumentError: a setting is malformed; named like its variable.
    """
    if not _is_endpoint(settings.endpoint):
        shown = None if "@" in settings.endpoint else settings.endpoint  # it may hold a password
        raise InvalidArgumentError(
            environment.NNI_S3_ENDPOINT, "must be http[s]://host[:port]", shown
        )
    if not _BUCKET.match(settings.bucket):
        raise InvalidArgumentError(
            environment.NNI_S3_BUCKET,
            "must be 3 to 63 lower-case letters, digits, '.' and '-'",
            settings.bucket,
        )
    return settings


def _as_prefix(text: str) -> str:
    stripped = text.strip("/")
    return check_prefix(f"{stripped}/") if stripped else ""


def _is_endpoint(url: str) -> bool:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return False
    plain = not (parts.path or parts.query or parts.username)
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and plain and port != 0

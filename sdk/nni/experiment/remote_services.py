"""Services of another machine: where they are, and how they are called.

`NNI_ENDPOINT` is the address of page and REST. The address of gRPC is asked of it, unless
`NNI_GRPC_ENDPOINT` says it (as it must where a proxy stands in between).
"""

from __future__ import annotations

import ipaddress
import ssl
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from nni.experiment.endpoint import Endpoint
from nni.experiment.environment import RemoteSettings
from nni.experiment.errors import RefusedError
from nni.experiment.rest import get_json

_ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - what services say, not bound
_RULE: Final = "NNI_ENDPOINT must be https://HOST[:PORT]"


@lru_cache(maxsize=4)
def remote_endpoint(settings: RemoteSettings) -> Endpoint:
    """Return where the services listen.

    Raises:
        RefusedError: a setting breaks a rule, or secrets would travel in plain text.
        UnreachableError: they do not answer, or refuse the token.
    """
    parts = urlsplit(settings.url.rstrip("/"))
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        raise RefusedError(f"{_RULE}, got {settings.url.rpartition('@')[2]!r}")
    encrypted = parts.scheme == "https"
    if not encrypted and not settings.insecure and not _is_loopback(parts.hostname):
        raise RefusedError(
            f"{_RULE}: over http:// the token could be read on its way; set NNI_INSECURE=1 if "
            "that is wanted"
        )
    if not settings.token and not settings.certificate:
        raise RefusedError(
            "NNI_TOKEN must be set where NNI_ENDPOINT is; whoever runs the services makes one "
            "with: nnictl token create"
        )
    url = settings.url.rstrip("/")
    context = tls_context(settings) if encrypted else None
    told = get_json(f"{url}/api/v1/nni/version", settings.token, tls=context)
    facts = told if isinstance(told, dict) else {}
    return Endpoint(
        version=str(facts.get("version", "")),
        supervisor_pid=0,
        started_at="",
        http=url,
        grpc=settings.grpc or _reachable(str(facts.get("grpc", "")), parts.hostname),
        nats="",
        token=settings.token,
        remote=settings,
    )


def tls_context(settings: RemoteSettings) -> ssl.SSLContext:
    """Return how HTTPS is spoken with the services.

    Raises:
        RefusedError: a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        if settings.certificate:
            context.load_cert_chain(settings.certificate, settings.key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (settings.ca_file, settings.certificate, settings.key)))
        raise RefusedError(f"the certificates cannot be used ({error}): {files}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _reachable(address: str, host: str) -> str:
    """Return an address of gRPC; one that means every address of there has the host of HTTP."""
    told, _, port = address.rpartition(":")
    if not port.isdigit():
        raise RefusedError(
            "the services do not tell their gRPC address; set NNI_GRPC_ENDPOINT=HOST:PORT"
        )
    name = told.strip("[]")
    if name in _ANY_ADDRESS or (_is_loopback(name) and not _is_loopback(host)):
        name = host
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

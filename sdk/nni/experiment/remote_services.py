"""Addresses and credentials of services on another machine.

`NNI_ENDPOINT` is the address of page and REST. The address of gRPC is asked of it, unless
`NNI_GRPC_ENDPOINT` says it (as it must where a proxy stands in between).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from nni.experiment.environment import ANSWER_S, RemoteSettings
from nni.experiment.errors import RefusedError
from nni.experiment.rest import get_json
from nni.experiment.tls import tls_context

_ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - what services say, not bound
_RULE: Final = "NNI_ENDPOINT must be https://HOST[:PORT]"


@dataclass(frozen=True, slots=True)
class RemoteEndpoint:
    """Version and reachable addresses of services on another machine."""

    version: str
    """Version of NNI; empty if the services do not report it."""
    http: str
    """Base address of the page and REST."""
    grpc: str
    """`host:port` of the manager, as it can be reached from here."""


@lru_cache(maxsize=4)
def remote_endpoint(settings: RemoteSettings, timeout_s: float = ANSWER_S) -> RemoteEndpoint:
    """Return checked version and addresses of remote services; cached by the settings.

    Args:
        settings: of the user's environment.
        timeout_s: for the connection and for each read.

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
            "NNI_TOKEN must be set where NNI_ENDPOINT is; an administrator makes one "
            "with: nnictl token create"
        )
    url = settings.url.rstrip("/")
    context = tls_context(settings) if encrypted else None
    answer = get_json(f"{url}/api/v1/nni/version", settings.token, timeout_s, context)
    facts = answer if isinstance(answer, dict) else {}
    return RemoteEndpoint(
        version=str(facts.get("version", "")),
        http=url,
        grpc=settings.grpc or _reachable(str(facts.get("grpc", "")), parts.hostname),
    )


def _reachable(address: str, host: str) -> str:
    """Return remote gRPC's `host:port`, with the HTTP host for `0.0.0.0` or loopback; or raise."""
    given_host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise RefusedError(
            "the services do not tell their gRPC address; set NNI_GRPC_ENDPOINT=HOST:PORT"
        )
    name = given_host.strip("[]")
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

"""Signature of requests to Alibaba Cloud, version 3 (ACS3-HMAC-SHA256).

Source: Alibaba Cloud, *Request structure and signature method V3*.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

ALGORITHM: Final = "ACS3-HMAC-SHA256"
_UNRESERVED: Final = "-_.~"


@dataclass(frozen=True, slots=True)
class AccessKey:
    """Access key of an Alibaba Cloud user: id and secret."""

    id: str
    secret: str = field(repr=False)


def canonical_query(query: Mapping[str, str]) -> str:
    """Return the sorted, percent-encoded query string that is signed and sent."""
    return "&".join(
        f"{quote(name, safe=_UNRESERVED)}={quote(value, safe=_UNRESERVED)}"
        for name, value in sorted(query.items())
    )


def authorization(
    key: AccessKey,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
) -> str:
    """Return the value of a request's `Authorization` header, by ACS3-HMAC-SHA256.

    Args:
        key: of the user.
        method: of HTTP.
        path: of the resource, encoded.
        query: parameters.
        headers: all that are signed, with lower-case names; `x-acs-content-sha256` is the hash of
            the body.
    """
    names = sorted(headers)
    signed = ";".join(names)
    request = "\n".join(
        [
            method,
            path,
            canonical_query(query),
            *(f"{name}:{headers[name].strip()}" for name in names),
            "",
            signed,
            headers["x-acs-content-sha256"],
        ]
    )
    text = f"{ALGORITHM}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(key.secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    return f"{ALGORITHM} Credential={key.id},SignedHeaders={signed},Signature={signature}"

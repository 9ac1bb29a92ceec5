"""Presigned URLs of S3 for one content length, which the client library cannot sign.

Source: Amazon S3 API reference, *Authenticating requests: using query parameters (AWS Signature
Version 4)*.
"""

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlsplit

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SIGNED_HEADERS: Final = "content-length;host"


def presigned_put(
    address: str,
    *,
    access_key: str,
    secret_key: str,
    region: str,
    lifetime: timedelta,
    size_bytes: int,
    now: datetime,
) -> str:
    """Return a URL, signed by AWS version 4, to PUT one object of exactly this size.

    The server refuses another `Content-Length`, since it is part of the signature.

    Args:
        address: of the object, percent-encoded, without a query.
        access_key: of the account.
        secret_key: of the account.
        region: of the bucket.
        lifetime: validity of the URL.
        size_bytes: size of the content.
        now: current time, in UTC.
    """
    day, second = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day}/{region}/s3/aws4_request"
    query = "&".join(
        f"{name}={quote(value, safe='')}"
        for name, value in (
            ("X-Amz-Algorithm", _ALGORITHM),
            ("X-Amz-Credential", f"{access_key}/{scope}"),
            ("X-Amz-Date", second),
            ("X-Amz-Expires", f"{lifetime.total_seconds():.0f}"),
            ("X-Amz-SignedHeaders", _SIGNED_HEADERS),
        )
    )
    parts = urlsplit(address)
    request = "\n".join(
        (
            "PUT",
            parts.path,
            query,
            f"content-length:{size_bytes}",
            f"host:{parts.netloc}",
            "",
            _SIGNED_HEADERS,
            "UNSIGNED-PAYLOAD",
        )
    )
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join((_ALGORITHM, second, scope, digest))
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    return f"{address}?{query}&X-Amz-Signature={signature}"

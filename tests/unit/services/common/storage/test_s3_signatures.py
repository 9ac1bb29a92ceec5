"""Presigned URLs; that a server accepts them is tested with a real one."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

from svc_common.storage.s3_signatures import presigned_put

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def url_of(address: str = "https://s3:9000/bucket/a/b", size_bytes: int = 7) -> str:
    return presigned_put(
        address,
        access_key="key",
        secret_key="secret",
        region="eu-west-1",
        lifetime=timedelta(minutes=10),
        size_bytes=size_bytes,
        now=NOW,
    )


def test_url_names_account_time_and_signed_headers() -> None:
    parts = urlsplit(url_of())
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}

    signature = query.pop("X-Amz-Signature")
    assert (parts.netloc, parts.path) == ("s3:9000", "/bucket/a/b")
    assert query == {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "key/20260102/eu-west-1/s3/aws4_request",
        "X-Amz-Date": "20260102T030405Z",
        "X-Amz-Expires": "600",
        "X-Amz-SignedHeaders": "content-length;host",
    }
    assert len(bytes.fromhex(signature)) == 32


def test_size_and_address_are_part_of_the_signature() -> None:
    other = url_of("https://s3:9000/bucket/a/c")

    assert len({url_of(), url_of(size_bytes=8), other.replace("/c?", "/b?")}) == 3
    assert "secret" not in url_of()

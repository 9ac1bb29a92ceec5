"""Rules of keys; the suites of `tests/conformance/storage` hold the ports."""

import hashlib

import pytest

from svc_common.errors import DataLossError, InvalidArgumentError
from svc_common.storage.ports import (
    KEY_LIMIT_CHARACTERS,
    check_content,
    check_key,
    check_prefix,
    content_key,
    digest_of,
)

LONG = "a/" + "b" * KEY_LIMIT_CHARACTERS


def test_content_key_has_the_hash_of_the_content() -> None:
    digest = hashlib.sha256(b"x").hexdigest()

    assert content_key(b"x") == f"sha256/{digest}"
    assert digest_of(content_key(b"x")) == digest
    assert digest_of("output/exp/x") is None


@pytest.mark.parametrize("key", ["a/b", "sha256/00", "output/exp-1/tri_al/1/files.tar"])
def test_valid_key_is_returned(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize(
    "key",
    ["", "a", "/a/b", "a/", "a//b", "a/../b", "a/.b", ".a/b", "a/b c", "a/b\n", "a/ü", LONG],
)
def test_invalid_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^key must be"):
        check_key(key)


def test_key_of_the_limit_is_valid() -> None:
    check_key("a/" + "b" * (KEY_LIMIT_CHARACTERS - 2))


@pytest.mark.parametrize("prefix", ["", "a", "a/b", "../", "/", "a//"])
def test_invalid_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidArgumentError):
        check_prefix(prefix)


def test_other_content_than_the_key_promises_is_data_loss() -> None:
    check_content(content_key(b"x"), hashlib.sha256(b"x").hexdigest())
    check_content("output/exp/x", "any")

    with pytest.raises(DataLossError, match="damaged") as loss:
        check_content(content_key(b"x"), "00")

    assert (loss.value.expected_sha256, loss.value.found_sha256) == (
        hashlib.sha256(b"x").hexdigest(),
        "00",
    )

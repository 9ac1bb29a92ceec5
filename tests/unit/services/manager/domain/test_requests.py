import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.domain.inputs import KillTrial
from svc_manager.domain.requests import (
    check_repetition,
    fingerprint,
    fingerprint_of_bytes,
    request_record,
)


def test_different_requests_have_different_fingerprints() -> None:
    asked = [KillTrial("a"), KillTrial("b"), ("a",), b"a", "a"]

    assert len({fingerprint(one) for one in asked}) == len(asked)
    assert fingerprint(KillTrial("a")) == fingerprint(KillTrial("a"))


@pytest.mark.parametrize(
    "content",
    [b"", b"plain", b"'", b'"', b"'\"", b"\\\n\x00\xff", b"a" * 600_000 + b"'", b'"' * 600_000],
    ids=["empty", "plain", "single", "double", "both", "escaped", "late quote", "many"],
)
def test_fingerprint_in_steps_is_that_of_all_bytes(content: bytes) -> None:
    for rest in [(8080, "prefix"), ("it's",), (0, "", "id")]:
        assert fingerprint_of_bytes(content, *rest) == fingerprint((content, *rest))


@pytest.mark.parametrize(
    ("known", "method", "same"),
    [
        (request_record("KillTrial", "p1"), "KillTrial", True),
        (request_record("KillTrial", "p2"), "KillTrial", False),
        (request_record("AddTrial", "p1"), "KillTrial", False),
        (request_record("KillTrial", ""), "KillTrial", True),  # a log that keeps no fingerprints
        (request_record("AddTrial", ""), "KillTrial", False),
    ],
)
def test_only_the_same_request_is_a_repetition(known: str, method: str, *, same: bool) -> None:
    if same:
        check_repetition(known, "req-1", method, "p1")
    else:
        with pytest.raises(InvalidArgumentError, match="must name one request only, got 'req-1'"):
            check_repetition(known, "req-1", method, "p1")


def test_fingerprint_is_that_of_earlier_versions() -> None:
    assert fingerprint(("a", 1)) == "9a7f386fd1afb2ac", (
        "logs hold it: another one would make repetitions fail"
    )


def test_long_request_id_is_shown_in_part() -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        check_repetition("KillTrial p1", "r" * 81, "KillTrial", "p2")

    assert refusal.value.value == "r" * 80

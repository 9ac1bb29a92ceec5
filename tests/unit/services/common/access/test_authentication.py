from pathlib import Path

import pytest

from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator, address_of_peer
from svc_common.access.keyring import Keyring
from svc_common.errors import ResourceExhaustedError, UnauthenticatedError


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:192.0.2.7:41234", "192.0.2.7"),
        ("ipv6:%5B2001:db8::7%5D:41234", "2001:db8::7"),
        ("ipv6:[::1]:1", "::1"),
        ("unix:", "unix"),
        ("", ""),
    ],
)
def test_peers_of_grpc_are_addresses(peer: str, address: str) -> None:
    assert address_of_peer(peer) == address


def test_wrong_credentials_are_audited_and_missing_ones_are_not(tmp_path: Path) -> None:
    authenticator = Authenticator(Keyring("own"), AuditTrail(tmp_path))

    with pytest.raises(UnauthenticatedError, match="not known here"):
        authenticator.identify("192.0.2.7", "guess", "", "GET /x")
    with pytest.raises(UnauthenticatedError, match="Bearer"):
        authenticator.identify("192.0.2.7", "", "", "GET /x")
    authenticator.close()

    text = (tmp_path / "audit.log").read_text()
    assert text.count("UNAUTHENTICATED") == 1
    assert "guess" not in text


def test_call_without_credentials_is_not_counted() -> None:
    authenticator = Authenticator.of_token("own")

    for _ in range(1000):
        with pytest.raises(UnauthenticatedError):
            authenticator.identify("192.0.2.7", "", "", "GET /x")

    assert authenticator.identify("192.0.2.7", "own", "", "GET /x").name == "installation"


def test_failures_are_counted_over_all_servers_of_a_process() -> None:
    authenticator = Authenticator(Keyring("own"), AuditTrail(), now_s=lambda: 0.0)
    for number in range(20):
        with pytest.raises(UnauthenticatedError):
            authenticator.identify(
                "192.0.2.7", f"{number}", "", ("GET /x", "/svc/Method")[number % 2]
            )

    with pytest.raises(ResourceExhaustedError):
        authenticator.identify("192.0.2.7", "own", "", "GET /x")


def test_find_caller_counts_nothing() -> None:
    authenticator = Authenticator(Keyring("own"), AuditTrail(), now_s=lambda: 0.0)

    assert all(authenticator.find_caller("guess", "") is None for _ in range(100))
    found = authenticator.find_caller("own", "")
    assert found is not None
    assert authenticator.identify("192.0.2.7", "own", "", "GET /x") == found

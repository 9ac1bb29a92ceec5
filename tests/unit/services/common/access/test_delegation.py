"""Calls on behalf of another caller, which gain no permission by it."""

from pathlib import Path

import pytest

from nni_wire.access import AccessEntry, dump_entries
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.delegation import ON_BEHALF_KEY, Delegation, effective_caller
from svc_common.access.keyring import Keyring
from svc_common.access.roles import AGENTS_NAME, READER, SERVICES_NAME, Caller, Role
from svc_common.errors import PermissionDeniedError

TOKEN = "a token of these tests"
SERVICE = Caller(SERVICES_NAME, Role.ADMIN, "token")


@pytest.fixture
def delegation(tmp_path: Path) -> Delegation:
    file = tmp_path / "access.json"
    file.write_text(dump_entries([AccessEntry("box", "user", common_name="box.lab")]))
    file.chmod(0o600)
    return Delegation(Authenticator(Keyring(TOKEN, file), AuditTrail()), TOKEN)


def test_delegated_certificate_is_the_same_caller_at_the_next_service(
    delegation: Delegation,
) -> None:
    metadata = dict(delegation.metadata_of_certificate("box.lab"))

    assert metadata["authorization"] == f"Bearer {TOKEN}"
    assert effective_caller(SERVICE, metadata[ON_BEHALF_KEY]) == Caller(
        "box", Role.USER, "certificate"
    )


@pytest.mark.parametrize("name", ["", "unknown.lab"])
def test_unknown_certificate_delegates_no_caller(delegation: Delegation, name: str) -> None:
    assert delegation.metadata_of_certificate(name) == ()


def test_call_without_delegation_keeps_its_caller() -> None:
    assert effective_caller(SERVICE, "") is SERVICE


@pytest.mark.parametrize(
    "caller",
    [
        READER,
        Caller("eve", Role.USER, "token"),
        Caller("ada", Role.ADMIN, "token"),
        Caller(AGENTS_NAME, Role.AGENT, "token"),
        Caller(SERVICES_NAME, Role.VIEWER, "token"),
    ],
    ids=lambda caller: caller.name,
)
def test_only_services_may_delegate(caller: Caller) -> None:
    assert effective_caller(caller, "admin token root") is caller


@pytest.mark.parametrize("said", ["admin", "king token eve", "user token eve more", "user token"])
def test_malformed_delegation_is_refused(said: str) -> None:
    with pytest.raises(PermissionDeniedError, match=ON_BEHALF_KEY):
        effective_caller(SERVICE, said)

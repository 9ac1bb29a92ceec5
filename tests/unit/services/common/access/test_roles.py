import pytest

from nni_wire.access import ROLES
from svc_common.access.permissions import ADMINISTERS, CHANGES, READS, UPLOADS
from svc_common.access.roles import Caller, Role, Rule
from svc_common.errors import PermissionDeniedError


@pytest.mark.parametrize("word", ROLES)
def test_names_of_the_file_are_roles(word: str) -> None:
    assert Role.of_word(word).word == word


@pytest.mark.parametrize(
    ("role", "may"),
    [
        (Role.AGENT, [UPLOADS]),
        (Role.VIEWER, [READS]),
        (Role.USER, [READS, CHANGES, UPLOADS]),
        (Role.ADMIN, [READS, CHANGES, UPLOADS, ADMINISTERS]),
    ],
)
def test_each_role_has_its_permissions(role: Role, may: list[Rule]) -> None:
    caller = Caller("alice", role, "token")

    for rule in (READS, CHANGES, UPLOADS, ADMINISTERS):
        if rule in may:
            caller.check(rule, "It")
        else:
            with pytest.raises(PermissionDeniedError, match="It needs the role"):
                caller.check(rule, "It")

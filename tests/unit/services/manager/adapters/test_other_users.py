"""Other people with accounts on this machine."""

import pwd

import pytest

from svc_manager.adapters.other_users import other_human_users


def account(name: str, uid: int, shell: str = "/bin/bash") -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", shell))


def test_people_who_can_log_in_are_others() -> None:
    accounts = [account("root", 0), account("me", 1000), account("bob", 1001, "/usr/bin/zsh")]

    assert other_human_users(accounts, own_uid=1000) == ["bob"]
    assert other_human_users(accounts, own_uid=0) == ["me", "bob"]


@pytest.mark.parametrize(
    "other",
    [
        account("daemon", 999),
        account("overflow", 65534),
        account("svc", 1002, "/usr/sbin/nologin"),
        account("svc", 1002, "/bin/false"),
        account("svc", 1002, ""),
    ],
)
def test_accounts_of_the_system_are_no_people(other: pwd.struct_passwd) -> None:
    assert other_human_users([account("me", 1000), other], own_uid=1000) == []


def test_accounts_of_this_machine_are_listed() -> None:
    own = pwd.getpwall()[0].pw_name

    assert own not in other_human_users(own_uid=pwd.getpwnam(own).pw_uid)

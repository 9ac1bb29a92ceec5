"""Users of agents in files of the installation."""

import json
from pathlib import Path

import pytest

from nni_wire.folders import AGENTS_ACCESS_FILE
from svc_common.access.keyring import Keyring
from svc_common.access.roles import Role
from svc_common.agent_users import PROBE, USERS_FILE, AgentUsers
from svc_common.errors import InvalidArgumentError, ResourceExhaustedError
from tests.support.unreadable_files import make_unreadable

NAME, POOL = "nni-abcd1234-exp-e1-7", "exp-e1"


def names(users: AgentUsers) -> list[str]:
    return [user.name for user, _ in users.logins() if user.name != PROBE]


def stored_agent(fields: object) -> bytes:
    return json.dumps({"agents": [fields]}).encode()


def test_credentials_are_different_for_each_issue(tmp_path: Path) -> None:
    users = AgentUsers(tmp_path)

    first, second = users.issue(NAME, POOL), users.issue(NAME, POOL)

    assert first.user == second.user == NAME
    assert len({first.password, second.password, first.token, second.token}) == 4
    assert {user.name: word for user, word in users.logins()}[NAME] == second.password


def test_users_outlive_the_process(tmp_path: Path) -> None:
    before = AgentUsers(tmp_path)
    issued = before.issue(NAME, POOL)
    before.save()

    after = AgentUsers(tmp_path)

    ((user, password),) = [one for one in after.logins() if one[0].name == NAME]
    assert password == issued.password
    assert "nni.api.CONSUMER.MSG.NEXT.TASKS.pool-exp-e1" in user.publish
    assert f"nni.inbox.e1.{NAME}" in user.publish


def test_files_are_for_their_owner_and_have_no_token(tmp_path: Path) -> None:
    users = AgentUsers(tmp_path)
    token = users.issue(NAME, POOL).token
    users.save()

    for name in (USERS_FILE, AGENTS_ACCESS_FILE):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
        assert token not in (tmp_path / name).read_text()


def test_token_is_known_to_the_manager_as_that_of_one_agent(tmp_path: Path) -> None:
    users = AgentUsers(tmp_path)
    keyring = Keyring("installation", users.access_file)
    first = users.issue(NAME, POOL)
    users.save()

    caller = keyring.of_token(first.token)

    assert caller is not None
    assert (caller.name, caller.role) == (NAME, Role.AGENT)


def test_token_is_unknown_after_a_second_issue_and_after_the_end(tmp_path: Path) -> None:
    users = AgentUsers(tmp_path)
    keyring = Keyring("installation", users.access_file)
    first = users.issue(NAME, POOL)
    users.save()
    assert keyring.of_token(first.token) is not None
    second = users.issue(NAME, POOL)
    users.save()
    assert keyring.of_token(first.token) is None
    assert keyring.of_token(second.token) is not None

    users.revoke([NAME, "nni-abcd1234-exp-e1-8"])
    users.save()

    assert keyring.of_token(second.token) is None
    assert names(users) == []


def test_bus_shows_by_a_user_which_revision_it_has_read(tmp_path: Path) -> None:
    users = AgentUsers(tmp_path)
    before = users.revision

    users.renew_revision()

    assert users.revision != before
    assert [password for user, password in users.logins() if user.name == PROBE] == [users.revision]


@pytest.mark.parametrize(
    ("name", "pool"),
    [
        ("manager", "p"),
        ("nni-abcd1234-p-1", "other"),
        ("nni-abcd1234-p-1", ""),
        ("nni-abcd1234-p.q-1", "p.q"),
        ("nni-abcd1234-*-1", "*"),
        ("nni-abcd1234-p-1\n", "p"),
        ("nni-ABCD1234-p-1", "p"),
        ("nni-abcd1234-exp--1", "exp-"),
        ("", "p"),
    ],
)
def test_name_that_is_none_of_an_agent_of_the_pool_is_refused(
    tmp_path: Path, name: str, pool: str
) -> None:
    users = AgentUsers(tmp_path)

    with pytest.raises(InvalidArgumentError):
        users.issue(name, pool)

    assert names(users) == []


def test_number_of_agents_is_limited(tmp_path: Path) -> None:
    users = AgentUsers(tmp_path, limit=2)
    for number in range(2):
        users.issue(f"nni-abcd1234-p-{number}", "p")

    with pytest.raises(ResourceExhaustedError):
        users.issue("nni-abcd1234-p-2", "p")

    assert users.issue("nni-abcd1234-p-1", "p").user == "nni-abcd1234-p-1"


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xf3 is no UTF-8",
        b"[]",
        b"[" * 100_000,
        b'{"agents": 1}',
        stored_agent(None),
        stored_agent({"name": "x"}),
        stored_agent({"name": "a", "pool": ">", "password": "p1", "sha256": "0" * 64}),
        stored_agent({"name": "a", "pool": "p", "password": "p1", "sha256": "x"}),
        stored_agent({"name": "a", "pool": "p", "password": 1, "sha256": "0" * 64}),
        stored_agent({"name": "a", "pool": "p", "password": 'p"\n', "sha256": "0" * 64}),
    ],
)
def test_damaged_file_revokes_all_agents(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / USERS_FILE).write_bytes(damaged)

    users = AgentUsers(tmp_path)

    assert names(users) == []
    assert AgentUsers(tmp_path).issue(NAME, POOL).user == NAME


def test_unreadable_file_revokes_all_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = AgentUsers(tmp_path)
    users.issue(NAME, POOL)
    users.save()
    make_unreadable(monkeypatch, tmp_path / USERS_FILE)

    assert names(AgentUsers(tmp_path)) == []


@pytest.mark.parametrize("pool", ["local", "check-1"])
def test_pool_that_is_none_of_the_fleet_is_refused(pool: str, tmp_path: Path) -> None:
    users = AgentUsers(tmp_path)

    with pytest.raises(InvalidArgumentError, match="pool must be that of an experiment"):
        users.issue(f"nni-0123abcd-{pool}-1", pool)

    assert users.issue("nni-0123abcd-gpus-1", "gpus").user == "nni-0123abcd-gpus-1"

import re

import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.messaging.permissions import (
    dispatcher_user,
    fleet_user,
    manager_user,
    runner_user,
    users_block,
)


def test_answers_to_each_user_go_below_its_own_name() -> None:
    users = [manager_user(), dispatcher_user(), runner_user("box", "local", "box")]

    for user in users:
        inboxes = {one for one in user.subscribe if one.startswith("_INBOX")}
        assert inboxes == {f"_INBOX.{user.name}.>"}


def test_only_the_manager_may_write_logs_or_change_streams() -> None:
    for user in (dispatcher_user(), runner_user("pool", "local"), runner_user("b", "local", "b")):
        for subject in user.publish:
            assert not subject.startswith(("nni.experiment", "nni.>", ">", "$JS.>", "$JS.API.>"))
            assert "STREAM.CREATE" not in subject
            assert "STREAM.PURGE" not in subject


def test_each_user_but_the_managers_has_an_account_of_its_own() -> None:
    text = users_block(
        [
            (manager_user(), "m"),
            (manager_user("operator"), "o"),
            (dispatcher_user(), "d"),
            (runner_user("box", "gpu", "box"), "b"),
        ]
    )

    accounts = re.findall(r'^  "([^"]+)" \{$', text, re.MULTILINE)
    assert accounts == ["NNI", "user-dispatcher", "user-box"]
    assert text.count("jetstream: enabled") == 1


def test_account_imports_what_its_user_publishes_and_receives() -> None:
    text = users_block([(runner_user("box", "gpu", "box"), "b"), (fleet_user(), "f")])

    pull = "CONSUMER.MSG.NEXT.TASKS.pool-gpu"
    early = "CONSUMER.MSG.NEXT.TASKS.retry-gpu"
    imports = text.partition("imports: [")[2].partition("]")[0]
    assert imports.split("\n")[1:-1] == [
        '      {service: {account: "NNI", subject: "nni.inbox.*.box"}}',
        '      {service: {account: "NNI", subject: "nni.presence.box"}}',
        '      {service: {account: "NNI", subject: "nni.log.*.*"}}',
        f'      {{service: {{account: "NNI", subject: "$JS.API.{pull}"}}, to: "nni.api.{pull}"}}',
        f'      {{service: {{account: "NNI", subject: "$JS.API.{early}"}}, to: "nni.api.{early}"}}',
        '      {service: {account: "NNI", subject: "$JS.ACK.TASKS.pool-gpu.>"}}',
        '      {service: {account: "NNI", subject: "$JS.ACK.TASKS.retry-gpu.>"}}',
        '      {stream: {account: "NNI", subject: "nni.control.box"}}',
        '      {service: {account: "user-fleet", subject: "nni.presence.box"}}',
        '      {stream: {account: "user-fleet", subject: "nni.control.box"}}',
    ]


def test_without_a_fleet_nothing_is_imported_from_its_account() -> None:
    assert "user-fleet" not in users_block([(manager_user(), "m"), (runner_user("b", "p"), "b")])


def test_agent_of_an_experiments_pool_reports_for_that_experiment_only() -> None:
    user = runner_user("a", "exp-e1", "nni-a")

    assert {one for one in user.publish if one.startswith(("nni.inbox", "nni.log"))} == {
        "nni.inbox.e1.nni-a",
        "nni.log.e1.*",
    }


def test_fleet_exports_what_agents_import() -> None:
    text = users_block([(fleet_user(), "f")])

    exports = text.partition("exports: [")[2].partition("]")[0]
    assert exports.split() == [
        "{stream:", '"nni.control.*"}', "{service:", '"nni.presence.*"}',
    ]  # fmt: skip
    assert "nni.control" not in text.partition("imports: [")[2].partition("]")[0]


def test_user_of_one_agent_has_no_wildcard_in_place_of_its_id() -> None:
    user = runner_user("box", "local", "box")

    assert "nni.inbox.*.box" in user.publish
    assert "nni.presence.box" in user.publish
    assert "nni.control.box" in user.subscribe
    assert "nni.inbox.*.*" not in user.publish


@pytest.mark.parametrize("name", ["", "a.b", "*", ">", "a b", "-x"])
def test_names_that_could_widen_a_subject_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        runner_user(name, "local")
    with pytest.raises(InvalidArgumentError):
        runner_user("pool", name)


def test_password_cannot_leave_its_place() -> None:
    text = users_block([(manager_user(), 'x", permissions: {}}, {user: "root')])

    assert 'password: "x\\", permissions' in text


def test_variable_of_the_server_is_named_as_one() -> None:
    assert "password: $SECRET\n" in users_block([(manager_user(), "$SECRET")])

import json
from dataclasses import replace

import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.storage.shared_storage import LocalMount, SharedStorage, StorageKind
from svc_trial_runner.agent_settings import (
    AgentSettings,
    ConnectionKind,
    ConnectionSettings,
    parse_agent_settings,
    write_agent_settings,
)

SETTINGS = AgentSettings(
    name="nni-0123abcd-exp-1-0",
    pool="exp-1",
    platform="remote",
    home="~/.nni",
    connection=ConnectionSettings(ConnectionKind.SOCKETS, folder="/run/x"),
    bus_user="agent",
    bus_password="hidden-1",
    manager_token="hidden-2",
    setup_lines=("module load cuda",),
    gpu_indices=(0, 2),
)


def test_settings_are_read_back() -> None:
    assert parse_agent_settings(write_agent_settings(SETTINGS)) == SETTINGS


def test_field_that_an_older_fleet_does_not_write_has_its_default() -> None:
    fields = json.loads(write_agent_settings(replace(SETTINGS, slots=4)))
    del fields["slots"]

    assert parse_agent_settings(json.dumps(fields).encode()).slots == 1


def test_defaults_are_those_of_the_documentation() -> None:
    assert (SETTINGS.slots, SETTINGS.silence_limit_s, SETTINGS.grace_s) == (1, 120, 5)
    assert (SETTINGS.bus_is_here, SETTINGS.removes_home) == (False, False)


@pytest.mark.parametrize(
    "storage",
    [
        SharedStorage(StorageKind.NFS, "/mnt/here", "mnt", LocalMount.NNI, nfs_server="10.0.0.1"),
        SharedStorage(StorageKind.AZURE_BLOB, "/mnt/here", "mnt", LocalMount.USER, mark="x"),
    ],
)
def test_shared_storage_is_read_back(storage: SharedStorage) -> None:
    settings = replace(SETTINGS, shared_storage=storage)

    assert parse_agent_settings(write_agent_settings(settings)) == settings


def test_smallest_numbers_are_accepted() -> None:
    smallest = replace(
        SETTINGS, slots=1, max_trials=1, trials_per_gpu=1, grace_s=2.0, silence_limit_s=0.5
    )

    assert parse_agent_settings(write_agent_settings(smallest)) == smallest


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(SETTINGS)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"no JSON", "must be JSON"),
        (b"[" * 100_000, "must be JSON"),
        (b"[]", "must have format 1"),
        (b'{"format": 2}', "must have format 1"),
        (b'{"format": 1}', "must have the fields"),
        (b'{"format": 1, "connection": {"kind": "pigeon"}}', "must have the fields"),
    ],
)
def test_broken_file_is_refused_with_the_rule(content: bytes, rule: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rule):
        parse_agent_settings(content)


def test_grace_too_short_for_the_last_reports_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="grace_s must be >= 2"):
        replace(SETTINGS, grace_s=1.0)


@pytest.mark.parametrize("name", ["slots", "max_trials", "trials_per_gpu", "silence_limit_s"])
def test_numbers_below_their_minimum_are_refused_by_name(name: str) -> None:
    fields = {**json.loads(write_agent_settings(SETTINGS)), name: 0}

    with pytest.raises(InvalidArgumentError, match=f"{name} must be >"):
        parse_agent_settings(json.dumps(fields).encode())

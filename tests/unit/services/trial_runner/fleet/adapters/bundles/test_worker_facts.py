"""Rules that a worker must keep to run an agent."""

import json
from dataclasses import replace
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult, WorkerFailure
from svc_trial_runner.fleet.adapters.bundles.worker_facts import (
    WorkerFacts,
    check_facts,
    read_facts,
)

FACTS = WorkerFacts(
    host="lab7",
    python=(3, 11),
    implementation="cpython",
    interpreter="/usr/bin/python3",
    system="Linux",
    machine="x86_64",
    platform_tag="manylinux_2_36_x86_64",
    folder="/home/u/.nni",
    home="/home/u",
    free_bytes=10**10,
    free_files=10**6,
    noexec=False,
    bundles=(),
    time_s=0.0,
    cores=4,
)


def test_ordinary_machine_is_accepted() -> None:
    check_facts(FACTS)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"system": "Darwin"}, "wrong_system", "runs Darwin"),
        ({"python": (3, 9)}, "no_python", r"is 3\.9, needed is 3\.11"),
        ({"implementation": "pypy"}, "wrong_python", "pypy"),
        ({"implementation": "cpythont"}, "wrong_python", "cpythont"),
        ({"platform_tag": ""}, "wrong_machine", "C library"),
        ({"noexec": True}, "noexec", "mounted noexec"),
        ({"free_bytes": 1 << 20}, "disk_full", "1 MB free, needed are 200 MB"),
        ({"free_files": 10}, "disk_full", "room for 10 files"),
    ],
)
def test_broken_rule_is_one_message_with_a_remedy(
    change: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises(WorkerFailure, match=message) as caught:
        check_facts(replace(FACTS, **change))

    assert caught.value.code == code
    assert caught.value.permanent
    assert caught.value.remedy
    assert "lab7" in str(caught.value)


def test_little_space_is_enough_where_a_bundle_is() -> None:
    check_facts(replace(FACTS, free_bytes=1 << 20, bundles=("a",)))


def test_file_system_without_a_limit_of_files_is_accepted() -> None:
    check_facts(replace(FACTS, free_files=None))


@pytest.mark.parametrize(
    "change",
    [
        {"free_bytes": 200 * 1024 * 1024},
        {"free_files": 4000},
        {"free_files": 0, "bundles": ("a",)},
        {"python": (3, 12)},
    ],
)
def test_machine_at_a_limit_is_accepted(change: dict[str, Any]) -> None:
    found = replace(FACTS, **change)

    check_facts(found)

    assert found != FACTS


@pytest.mark.parametrize(
    "change", [{"free_bytes": 200 * 1024 * 1024 - 1}, {"free_files": 3999}, {"python": (3, 10)}]
)
def test_machine_below_a_limit_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(WorkerFailure) as caught:
        check_facts(replace(FACTS, **change))

    assert caught.value.permanent


def test_facts_have_the_first_two_parts_of_the_version() -> None:
    report = {
        "host": "lab7", "python": [3, 12, 1], "implementation": "cpython",
        "interpreter": "/usr/bin/python3", "system": "Linux", "machine": "x86_64",
        "platform_tag": "manylinux_2_36_x86_64", "folder": "/home/u/.nni", "home": "/home/u",
        "free_bytes": 10**10, "free_files": 10**6, "noexec": False, "bundles": ["a"],
        "time": 7.0, "cores": 4,
    }  # fmt: skip

    found = read_facts(CommandResult(f"NNI-WORKER {json.dumps(report)}\n".encode()))

    assert found == replace(FACTS, python=(3, 12), bundles=("a",), time_s=7.0)

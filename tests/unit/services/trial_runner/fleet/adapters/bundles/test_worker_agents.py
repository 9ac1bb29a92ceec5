"""Agents on a worker: start, state, stop, removal, with real processes."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.bundles import worker_agents
from svc_trial_runner.fleet.adapters.bundles.worker_folders import (
    PROCESS,
    SETTINGS,
    WorkerError,
    WorkerFolders,
    read_fields,
    write_fields,
)
from svc_trial_runner.fleet.adapters.bundles.worker_processes import (
    marked,
    runs,
    send_signal,
    start_time,
    wait_until,
)
from tests.support.worker_shell import DIGEST, TIMEOUT_S, stand_in_bundle, wait_for_output


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerFolders]:
    # On a machine that stalls, a supervisor needs more than that to write how its agent ended.
    monkeypatch.setattr(worker_agents, "_SUPERVISOR_S", TIMEOUT_S)
    folders = WorkerFolders(str(tmp_path / "nni"))
    folders.open()
    stand_in_bundle(folders.base)
    yield folders
    worker_agents.clean(folders, "", 0, bundles=True)


def start(folders: WorkerFolders, settings: bytes = b"{}", name: str = "one") -> dict[str, Any]:
    return worker_agents.start(folders, name, DIGEST, settings)


def stop(folders: WorkerFolders, grace_s: float) -> dict[str, Any]:
    (found,) = worker_agents.stop(folders, ["one"], grace_s)
    return found


def wait_for_state(folders: WorkerFolders, name: str, expected: str) -> dict[str, Any]:
    def has_it() -> bool:
        return bool(worker_agents.state(folders, name)["state"] == expected)

    assert wait_until(has_it, TIMEOUT_S), worker_agents.state(folders, name)
    return worker_agents.state(folders, name)


def test_started_agent_runs_in_a_session_of_its_own(folders: WorkerFolders) -> None:
    report = start(folders)

    assert report["started"]
    assert report["state"] == worker_agents.RUNNING
    assert os.getsid(report["pid"]) != os.getsid(0)


def test_running_agent_has_no_file_of_its_secrets(folders: WorkerFolders) -> None:
    start(folders, b'{"say": "has its settings"}')
    wait_for_output(folders, "one", "has its settings")

    assert not (folders.agent("one") / SETTINGS).exists()


def test_agent_that_runs_is_not_started_again(folders: WorkerFolders) -> None:
    first = start(folders)

    second = start(folders)

    assert not second["started"]
    assert second["pid"] == first["pid"]


def test_agent_that_is_started_twice_at_once_runs_once(folders: WorkerFolders) -> None:
    reports: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: reports.append(start(folders))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [report["started"] for report in reports].count(True) == 1
    wait_for_state(folders, "one", worker_agents.RUNNING)


def test_agent_that_has_ended_says_why(folders: WorkerFolders) -> None:
    start(folders, b'{"say": "ERROR: no bus", "exit": 2}')

    found = wait_for_state(folders, "one", worker_agents.ENDED)

    assert (found["exit_code"], found["reason"]) == (2, "ERROR: no bus")


def test_agent_that_has_ended_can_be_started_again(folders: WorkerFolders) -> None:
    start(folders, b'{"exit": 0}')
    wait_for_state(folders, "one", worker_agents.ENDED)

    assert wait_until(lambda: start(folders)["started"], TIMEOUT_S)

    assert worker_agents.state(folders, "one")["state"] == worker_agents.RUNNING


def test_killed_agent_has_ended(folders: WorkerFolders) -> None:
    report = start(folders)
    wait_for_output(folders, "one", "ready")

    os.kill(report["pid"], signal.SIGKILL)

    assert wait_for_state(folders, "one", worker_agents.ENDED)["reason"] == "its process was killed"


def test_agent_that_a_killed_supervisor_left_is_ended_by_the_next_start(
    folders: WorkerFolders,
) -> None:
    report = start(folders)
    wait_for_output(folders, "one", "ready")
    ((left, started),) = marked(folders.agent("one"))
    os.kill(report["pid"], signal.SIGKILL)
    wait_for_state(folders, "one", worker_agents.ENDED)

    assert start(folders)["started"]

    assert not runs(left, started)
    # A process that has just begun shows its environment a moment after its parent goes on.
    assert wait_until(lambda: len(marked(folders.agent("one"))) == 1, TIMEOUT_S)


def test_number_that_another_process_has_now_is_no_agent(folders: WorkerFolders) -> None:
    start(folders, b'{"exit": 0}')
    wait_for_state(folders, "one", worker_agents.ENDED)
    (folders.agent("one") / "end.json").unlink()
    process = read_fields(folders.agent("one") / PROCESS)
    mine = start_time(os.getpid()) or 0

    write_fields(
        folders.agent("one") / PROCESS,
        {**process, "pid": os.getpid(), "start_time": mine - 1},
    )

    assert stop(folders, 0)["state"] == worker_agents.ENDED


def test_stop_ends_the_agent_and_its_trials(folders: WorkerFolders) -> None:
    start(folders, b'{"trial": true}')
    wait_for_output(folders, "one", "ready")

    found = stop(folders, TIMEOUT_S)

    assert found["state"] == worker_agents.ENDED
    assert found["left"] == 0
    assert marked(folders.agent("one")) == []


def test_agent_that_does_not_end_is_killed_after_the_grace(folders: WorkerFolders) -> None:
    start(folders, b'{"deaf": true, "trial": true}')
    wait_for_output(folders, "one", "ready")

    found = stop(folders, 0)

    assert found["state"] == worker_agents.ENDED
    assert marked(folders.agent("one")) == []


def test_supervisor_that_does_not_end_is_killed(
    folders: WorkerFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_agents, "_SUPERVISOR_S", 0.0)
    pid = start(folders)["pid"]
    started = start_time(pid) or 0
    wait_for_output(folders, "one", "ready")
    os.kill(pid, signal.SIGSTOP)

    try:
        stop(folders, 0)

        assert wait_until(lambda: not runs(pid, started), TIMEOUT_S)
    finally:
        send_signal(pid, started, signal.SIGKILL)


def test_agents_that_are_stopped_together_share_the_grace(folders: WorkerFolders) -> None:
    names = ["one", "two", "three"]
    for name in names:
        start(folders, b'{"deaf": true}', name)
        wait_for_output(folders, name, "ready")

    found = worker_agents.stop(folders, names, 0)

    assert [agent["state"] for agent in found] == [worker_agents.ENDED] * 3
    assert [agent["exit_code"] for agent in found] == [128 + signal.SIGKILL] * 3


def test_trials_of_a_killed_agent_are_ended(folders: WorkerFolders) -> None:
    report = start(folders, b'{"trial": true}')
    wait_for_output(folders, "one", "ready")
    os.kill(report["pid"], signal.SIGKILL)
    wait_for_state(folders, "one", worker_agents.ENDED)

    assert stop(folders, 0)["left"] == 0
    assert marked(folders.agent("one")) == []


def test_removed_agent_leaves_nothing(folders: WorkerFolders) -> None:
    start(folders)

    worker_agents.remove(folders, ["one"], TIMEOUT_S)
    worker_agents.remove(folders, ["one"], TIMEOUT_S)

    assert folders.names() == []


def test_agent_of_another_machine_is_left_alone(folders: WorkerFolders) -> None:
    folders.agent("one").mkdir()
    write_fields(folders.agent("one") / PROCESS, {"machine": "other:1", "host": "other", "pid": 1})

    assert worker_agents.state(folders, "one")["state"] == worker_agents.ELSEWHERE
    assert not worker_agents.remove(folders, ["one"], 0)[0]["removed"]
    assert not start(folders)["started"]
    (folders.agent("one") / PROCESS).unlink()


def test_agent_from_before_a_restart_has_ended(folders: WorkerFolders) -> None:
    start(folders)
    process = read_fields(folders.agent("one") / PROCESS)
    stop(folders, TIMEOUT_S)
    (folders.agent("one") / "end.json").unlink()

    write_fields(folders.agent("one") / PROCESS, {**process, "boot": "earlier"})

    found = worker_agents.state(folders, "one")
    assert found["state"] == worker_agents.ENDED
    assert "was restarted" in found["reason"]


def test_agents_of_one_prefix_are_listed_and_removed(folders: WorkerFolders) -> None:
    for name in ("a-1", "a-2", "b-1"):
        worker_agents.write_settings(folders, name, DIGEST, b"{}")

    assert [found["name"] for found in worker_agents.states(folders, "a-")] == ["a-1", "a-2"]
    worker_agents.clean(folders, "a-", 0, bundles=False)
    assert folders.names() == ["b-1"]
    assert folders.bundle(DIGEST).is_dir()


def test_pool_whose_name_begins_with_that_of_a_removed_one_keeps_its_agents(
    folders: WorkerFolders,
) -> None:
    for name in ("gpus-1", "gpus-2-1"):
        worker_agents.write_settings(folders, name, DIGEST, b"{}")

    worker_agents.clean(folders, "gpus-", 0, bundles=False)

    assert folders.names() == ["gpus-2-1"]


def test_nothing_is_left_when_the_last_agent_is_removed_with_bundles(
    folders: WorkerFolders,
) -> None:
    worker_agents.write_settings(folders, "one", DIGEST, b"{}")

    worker_agents.clean(folders, "", 0, bundles=True)

    assert not folders.base.exists()


def test_start_without_the_bundle_asks_for_it(folders: WorkerFolders) -> None:
    with pytest.raises(WorkerError) as caught:
        worker_agents.start(folders, "one", "1" * 64, b"{}")

    assert (caught.value.code, caught.value.permanent) == ("bundle_missing", False)


def test_end_of_the_log_is_read(folders: WorkerFolders) -> None:
    start(folders, b'{"say": "first line"}')
    wait_for_output(folders, "one", "first line")

    assert worker_agents.read_tail(folders, "one", 5) == "line\n"
    assert worker_agents.read_tail(folders, "other", 5) == ""


def test_agent_that_does_not_start_gives_the_last_line_of_its_log(folders: WorkerFolders) -> None:
    run = folders.bundle(DIGEST) / "run.py"
    run.write_text("import sys; sys.exit('first line\\nno such module')")

    with pytest.raises(WorkerError, match=r"one did not start on .*: no such module$") as caught:
        start(folders)

    assert os.uname().nodename in caught.value.message
    assert (caught.value.code, caught.value.permanent) == ("start_failed", False)


def test_agent_that_does_not_start_may_give_no_reason(folders: WorkerFolders) -> None:
    (folders.bundle(DIGEST) / "run.py").write_text("")

    with pytest.raises(WorkerError, match=r"it gives no reason$"):
        start(folders, b"{}" * 100_000)  # more than a pipe holds, which is not read


def test_bundle_from_which_an_agent_starts_is_the_last_used_one(folders: WorkerFolders) -> None:
    os.utime(folders.bundle(DIGEST), (1000, 1000))

    start(folders)

    assert folders.bundle(DIGEST).stat().st_mtime > 1000


def test_state_of_an_agent_has_host_bundle_and_time_of_its_start(folders: WorkerFolders) -> None:
    before_s = time.time()
    start(folders)

    found = worker_agents.state(folders, "one")

    assert (found["name"], found["host"], found["bundle"]) == ("one", os.uname().nodename, DIGEST)
    assert before_s - 1 <= found["started_at"] <= time.time() + 1
    assert runs(found["pid"], start_time(found["pid"]) or 0)


def test_agent_that_was_not_started_is_prepared(folders: WorkerFolders) -> None:
    worker_agents.write_settings(folders, "one", DIGEST, b'{"a": 1}')

    assert worker_agents.state(folders, "one") == {
        "name": "one", "state": "prepared", "host": "", "pid": None, "bundle": "",
        "started_at": None,
    }  # fmt: skip
    folder = folders.agent("one")
    assert (folder / SETTINGS).read_bytes() == b'{"a": 1}'
    assert read_fields(folder / "prepared.json") == {"bundle": DIGEST}
    assert {path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())} == {0o700, 0o600}


def test_agents_that_are_removed_report_so(folders: WorkerFolders) -> None:
    worker_agents.write_settings(folders, "one", DIGEST, b"{}")

    (found, unknown) = worker_agents.remove(folders, ["one", "two"], 0)

    assert (found["name"], found["removed"], found["left"]) == ("one", True, 0)
    assert (unknown["name"], unknown["removed"]) == ("two", True)


def test_all_agents_are_cleaned_without_a_prefix(folders: WorkerFolders) -> None:
    for name in ("a-1", "plain"):
        worker_agents.write_settings(folders, name, DIGEST, b"{}")

    removed = worker_agents.clean(folders, "", 0, bundles=False)

    assert [found["name"] for found in removed] == ["a-1", "plain"]
    assert folders.bundle(DIGEST).is_dir()


def test_bundle_of_an_agent_that_stays_is_not_cleaned(folders: WorkerFolders) -> None:
    worker_agents.write_settings(folders, "b-1", DIGEST, b"{}")

    worker_agents.clean(folders, "a-", 0, bundles=True)

    assert folders.bundle(DIGEST).is_dir()
    assert folders.names() == ["b-1"]


def test_bytes_that_are_no_text_are_shown_in_a_log(folders: WorkerFolders) -> None:
    folders.agent("one").mkdir()
    (folders.agent("one") / "agent.log").write_bytes(b"\xffend")

    assert worker_agents.read_tail(folders, "one", 100) == "\ufffdend"

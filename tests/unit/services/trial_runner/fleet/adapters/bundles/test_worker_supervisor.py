"""Process above one agent: log with a limit, lock, end as a file."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_folders import (
    END,
    LOG,
    PROCESS,
    SETTINGS,
    WorkerError,
    WorkerFolders,
    read_fields,
)
from svc_trial_runner.fleet.adapters.bundles.worker_processes import runs, wait_until
from svc_trial_runner.fleet.adapters.bundles.worker_supervisor import (
    LimitedLog,
    lock_agent,
    supervise,
)
from tests.support.worker_shell import DIGEST, stand_in_bundle


@pytest.fixture
def folders(tmp_path: Path) -> WorkerFolders:
    folders = WorkerFolders(str(tmp_path / "nni"))
    folders.open()
    stand_in_bundle(folders.base)
    return folders


def command(folders: WorkerFolders, name: str, *options: str) -> list[str]:
    return [
        *(sys.executable, "-I", "-S", str(folders.bundle(DIGEST) / "run.py"), "worker"),
        *("--folder", str(folders.base), "run", *options, name, DIGEST),
    ]


def run(folders: WorkerFolders, name: str, settings: str) -> "subprocess.CompletedProcess[str]":
    folders.agent(name).mkdir()
    (folders.agent(name) / SETTINGS).write_text(settings)
    return subprocess.run(
        command(folders, name),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_log_goes_on_while_the_disk_has_no_room_for_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = LimitedLog(tmp_path / "agent.log", limit_bytes=8)
    log.write(b"12345678")

    with monkeypatch.context() as full:
        full.setattr(Path, "open", refuse)
        log.write(b"abc")
    log.write(b"ABC")
    log.close()

    assert (tmp_path / "agent.log.1").read_bytes() == b"12345678abc"
    assert (tmp_path / "agent.log").read_bytes() == b"ABC"


def test_log_starts_anew_at_its_limit(tmp_path: Path) -> None:
    log = LimitedLog(tmp_path / "agent.log", limit_bytes=10)

    for text in (b"12345678", b"abcdefgh", b"ABCDEFGH"):
        log.write(text)
    log.close()

    assert (tmp_path / "agent.log").read_bytes() == b"ABCDEFGH"
    assert (tmp_path / "agent.log.1").read_bytes() == b"abcdefgh"


def test_lock_has_one_holder(tmp_path: Path) -> None:
    held = lock_agent(tmp_path)

    assert held is not None
    assert lock_agent(tmp_path) is None
    os.close(held)
    again = lock_agent(tmp_path)
    assert again is not None
    os.close(again)


def test_end_of_an_agent_is_a_file_with_its_last_line(folders: WorkerFolders) -> None:
    done = run(folders, "one", '{"say": "ERROR: no bus", "exit": 3}')

    assert done.returncode == 3
    assert done.stdout == "started\n"
    end = read_fields(folders.agent("one") / END)
    assert (end["exit_code"], end["reason"]) == (3, "ERROR: no bus")
    assert (folders.agent("one") / LOG).read_text() == "ERROR: no bus\n"
    assert read_fields(folders.agent("one") / PROCESS)["bundle"] == DIGEST


def test_error_of_an_agent_goes_before_what_it_wrote_at_last(folders: WorkerFolders) -> None:
    run(folders, "one", '{"say": "ERROR: no bus\\ngoodbye", "exit": 3}')

    assert read_fields(folders.agent("one") / END)["reason"] == "ERROR: no bus"


def test_settings_are_there_again_for_a_job_that_is_requeued(folders: WorkerFolders) -> None:
    folder = folders.agent("one")
    folder.mkdir()
    (folder / SETTINGS).write_text("{}")
    job = subprocess.Popen(command(folders, "one"), stdout=subprocess.PIPE)
    with job:
        assert job.stdout is not None
        job.stdout.readline()
        process = read_fields(folder / PROCESS)
        assert not (folder / SETTINGS).exists()
        os.kill(process["pid"], signal.SIGTERM)

    assert wait_until(lambda: not runs(process["pid"], process["start_time"]), 30)
    assert (folder / SETTINGS).read_text() == "{}"


def test_agent_whose_lock_is_held_is_not_run_again(
    folders: WorkerFolders, capsys: pytest.CaptureFixture[str]
) -> None:
    folders.agent("one").mkdir()
    held = lock_agent(folders.agent("one"))
    assert held is not None

    assert supervise(folders, "one", DIGEST) == 0

    assert capsys.readouterr().out == "already_runs\n"
    os.close(held)


def test_agent_without_settings_is_refused(folders: WorkerFolders) -> None:
    with pytest.raises(WorkerError, match="has no settings"):
        supervise(folders, "one", DIGEST)


def test_agent_without_a_bundle_is_refused(folders: WorkerFolders) -> None:
    folders.agent("one").mkdir()
    (folders.agent("one") / SETTINGS).touch()

    with pytest.raises(WorkerError) as caught:
        supervise(folders, "one", "1" * 64)

    assert caught.value.code == "bundle_missing"


TETHERED = """
import os, signal, subprocess, sys
from pathlib import Path
from svc_trial_runner.fleet.adapters.bundles.worker_processes import MARK
from svc_trial_runner.fleet.adapters.bundles.worker_supervisor import Tether
requests = []
signal.signal(signal.SIGTERM, lambda number, _: requests.append(int(number)))
folder = Path(sys.argv[1])
trial = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: str(folder)})
tether = Tether(sys.stdin.buffer, folder, grace_s=0.0)
print(tether.is_cut, flush=True)
tether.start()
print(trial.wait(), requests, tether.is_cut)
"""


def test_end_of_the_tether_is_a_request_to_end_and_then_a_kill(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TETHERED, str(tmp_path)],
        input="more of the settings",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout == f"False\n{-signal.SIGKILL} [{int(signal.SIGTERM)}] True\n"

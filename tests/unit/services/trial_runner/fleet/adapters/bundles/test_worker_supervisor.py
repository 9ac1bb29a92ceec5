"""Process above one agent: log with a limit, lock, end as a file."""

import errno
import fcntl
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


def test_log_is_rotated_beyond_its_limit_only(tmp_path: Path) -> None:
    log = LimitedLog(tmp_path / "agent.log", limit_bytes=10)

    log.write(b"12345")
    log.write(b"67890")
    at_limit = (tmp_path / "agent.log.1").exists()
    log.write(b"a")
    log.close()

    assert not at_limit
    assert (tmp_path / "agent.log.1").read_bytes() == b"1234567890"
    assert (tmp_path / "agent.log").read_bytes() == b"a"


def test_output_that_is_longer_than_the_limit_does_not_replace_the_earlier_file(
    tmp_path: Path,
) -> None:
    log = LimitedLog(tmp_path / "agent.log", limit_bytes=4)

    log.write(b"123456")
    log.close()

    assert [path.name for path in tmp_path.iterdir()] == ["agent.log"]


def test_log_of_an_earlier_agent_is_continued(tmp_path: Path) -> None:
    (tmp_path / "agent.log").write_bytes(b"12345678")
    log = LimitedLog(tmp_path / "agent.log", limit_bytes=10)

    log.write(b"9")
    log.write(b"abc")
    log.close()

    assert (tmp_path / "agent.log.1").read_bytes() == b"123456789"
    assert (tmp_path / "agent.log").read_bytes() == b"abc"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_file_system_without_locks_holds_no_agent_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)

    descriptor = lock_agent(tmp_path)

    assert descriptor is not None
    os.close(descriptor)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_other_error_of_a_lock_is_raised_and_nothing_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(OSError, match="Input/output error"):
        lock_agent(tmp_path)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_lock_that_is_taken_leaves_no_descriptor_open(tmp_path: Path) -> None:
    held = lock_agent(tmp_path)
    assert held is not None
    before = len(list(Path("/proc/self/fd").iterdir()))

    assert lock_agent(tmp_path) is None

    assert len(list(Path("/proc/self/fd").iterdir())) == before
    os.close(held)


def test_settings_of_an_agent_that_ended_by_itself_are_gone(folders: WorkerFolders) -> None:
    run(folders, "one", '{"exit": 0}')

    assert not (folders.agent("one") / SETTINGS).exists()
    assert read_fields(folders.agent("one") / END)["exit_code"] == 0


def test_reason_of_an_end_has_500_characters_and_is_the_last_error(folders: WorkerFolders) -> None:
    errors = f"ERROR: first\\nERROR: {'a' * 600}\\nwords ERROR: no"

    run(folders, "one", f'{{"say": "{errors}", "exit": 1}}')

    assert read_fields(folders.agent("one") / END)["reason"] == f"ERROR: {'a' * 493}"


def test_reason_of_an_agent_without_output_is_empty(folders: WorkerFolders) -> None:
    run(folders, "one", '{"say": "", "exit": 1}')

    assert read_fields(folders.agent("one") / END)["reason"] == ""


def test_hang_up_does_not_end_a_supervisor_and_an_interrupt_ends_its_agent(
    folders: WorkerFolders,
) -> None:
    folder = folders.agent("one")
    folder.mkdir()
    (folder / SETTINGS).write_text("{}")
    with subprocess.Popen(command(folders, "one"), stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == b"started\n"
        process = read_fields(folder / PROCESS)
        os.kill(process["pid"], signal.SIGHUP)
        os.kill(process["pid"], signal.SIGINT)

    assert job.returncode == 128 + signal.SIGTERM
    end = read_fields(folder / END)
    assert end["exit_code"] == 128 + signal.SIGTERM
    assert process["started_at"] <= end["ended_at"]


def test_agent_that_is_run_again_has_no_earlier_end(folders: WorkerFolders) -> None:
    run(folders, "one", '{"exit": 3}')
    (folders.agent("one") / SETTINGS).write_text("{}")
    with subprocess.Popen(command(folders, "one"), stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        job.stdout.readline()
        ends = (folders.agent("one") / END).exists()
        job.terminate()

    assert not ends


def test_folder_of_the_agent_is_in_its_environment(folders: WorkerFolders) -> None:
    (folders.bundle(DIGEST) / "agent.py").write_text(
        "import os; print(os.environ['NNI_AGENT_FOLDER'], os.getcwd())"
    )

    run(folders, "one", "{}")

    assert (folders.agent("one") / LOG).read_text() == f"{folders.agent('one')} /\n"

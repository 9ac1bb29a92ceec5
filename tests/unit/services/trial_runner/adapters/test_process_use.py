"""Use of real processes, and the file of its samples."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_trial_runner.adapters import process_use
from svc_trial_runner.adapters.process_table import identity_of
from svc_trial_runner.adapters.process_use import ProcTrialUse
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.resource_use import RESOURCES

CHILD_WITH_MEMORY = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
data = os.urandom(40_000_000)
while os.times().user + os.times().system < 0.2: pass
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def leader() -> Iterator[ProcessIdentity]:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD_WITH_MEMORY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        identity = identity_of(process.pid)
        assert identity is not None
        yield identity
        process.communicate(b"")


def test_use_counts_the_whole_tree(leader: ProcessIdentity) -> None:
    use = ProcTrialUse().read(leader)

    assert use is not None
    assert use.processes == 2
    assert use.memory_bytes > 40_000_000
    assert 0.1 < use.cpu_s < 60


def test_waiting_process_has_used_no_cpu_time() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        identity = identity_of(process.pid)
        assert identity is not None
        use = ProcTrialUse().read(identity)
        process.communicate(b"")

    assert use is not None
    assert use.cpu_s < 0.15


def test_cpu_time_of_children_that_have_ended_counts() -> None:
    work = "import os\nwhile os.times().user + os.times().system < 0.3: pass"
    parent = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {work!r}])\n"
        "print(flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        identity = identity_of(process.pid)
        assert identity is not None
        use = ProcTrialUse().read(identity)
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        own_ticks = sum(map(int, fields[11:13]))
        process.communicate(b"\n")

    assert use is not None
    assert use.cpu_s >= 0.25 + own_ticks / os.sysconf("SC_CLK_TCK")


def test_process_that_took_over_the_number_has_no_use(leader: ProcessIdentity) -> None:
    earlier = ProcessIdentity(leader.pid, leader.start_time - 1)

    assert ProcTrialUse().read(earlier) is None


def test_ended_process_has_no_use() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        identity = identity_of(process.pid)
        assert identity is not None
        process.kill()

    assert ProcTrialUse().read(identity) is None


def test_lines_are_appended_and_forgotten(tmp_path: Path) -> None:
    (tmp_path / ".nni").mkdir()
    trials = ProcTrialUse()

    trials.append(str(tmp_path), b"one\n")
    trials.append(str(tmp_path), b"two\n")

    assert (tmp_path / RESOURCES).read_bytes() == b"one\ntwo\n"
    assert (tmp_path / RESOURCES).stat().st_mode & 0o133 == 0
    assert not [
        link
        for link in Path("/proc/self/fd").iterdir()
        if os.path.realpath(link) == str(tmp_path / RESOURCES)
    ]
    trials.forget(str(tmp_path))
    assert not (tmp_path / RESOURCES).exists()
    trials.forget(str(tmp_path))


def test_link_of_a_trial_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".nni").mkdir()
    target = tmp_path / "target"
    target.write_bytes(b"")
    (tmp_path / RESOURCES).symlink_to(target)

    ProcTrialUse().append(str(tmp_path), b"line\n")

    assert target.read_bytes() == b""


def test_pipe_of_a_trial_neither_blocks_nor_gets_the_line(tmp_path: Path) -> None:
    (tmp_path / ".nni").mkdir()
    os.mkfifo(tmp_path / RESOURCES)
    trials = ProcTrialUse()

    trials.append(str(tmp_path), b"line\n")  # without a reader
    reader = os.open(tmp_path / RESOURCES, os.O_RDONLY | os.O_NONBLOCK)
    trials.append(str(tmp_path), b"line\n")

    assert os.read(reader, 10) == b""
    os.close(reader)


def test_missing_folder_loses_the_line(tmp_path: Path) -> None:
    ProcTrialUse().append(str(tmp_path / "gone"), b"line\n")

    assert list(tmp_path.iterdir()) == []


def test_memory_of_one_process_is_what_is_resident() -> None:
    # It reserves 4 GiB, of which it touches nothing, and writes 40 MB.
    script = """
import mmap, sys
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
data = mmap.mmap(-1, 4 << 30, flags, mmap.PROT_READ)
resident = b"x" * 40_000_000
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        identity = identity_of(process.pid)
        assert identity is not None
        use = ProcTrialUse().read(identity)
        process.communicate(b"")

    assert use is not None
    assert use.processes == 1
    assert 40_000_000 < use.memory_bytes < 1 << 30


@pytest.mark.parametrize(
    ("limit", "count", "processes"),
    [
        ("_PROCESSES_LIMIT", 1000, 3),
        *(("_PROCESSES_LIMIT", 2, 2), ("_THREADS_LIMIT", 1, 2), ("_THREADS_LIMIT", 2, 3)),
    ],
)
def test_trial_of_many_processes_is_read_up_to_limits(
    monkeypatch: pytest.MonkeyPatch, limit: str, count: int, processes: int
) -> None:
    monkeypatch.setattr(process_use, limit, count)
    chain = "sh -c 'sh -c \"echo ready; exec sleep 600\"; :'; :"
    with subprocess.Popen(
        ["sh", "-c", chain], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        identity = identity_of(process.pid)
        assert identity is not None
        use = ProcTrialUse().read(identity)
        os.killpg(process.pid, signal.SIGKILL)

    assert use is not None
    assert use.processes == processes

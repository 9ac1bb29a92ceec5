import asyncio
import errno
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from svc_common.code_user import SAME_USER, CodeUser
from svc_trial_runner.adapters.trial_folders import DiskTrialFolders, OpenTrialFolder
from svc_trial_runner.ports import LaunchError, TrialFilesRequest

WAIT_S = 30.0


def opened(folder: Path, limit_bytes: int = 0) -> OpenTrialFolder:
    request = TrialFilesRequest(folder / "aaaaa", "#!/bin/bash\n", "{}", limit_bytes)
    return DiskTrialFolders(1000).open(request)


async def test_files_are_there_before_the_trial_starts(tmp_path: Path) -> None:
    output = opened(tmp_path)

    folder = tmp_path / "aaaaa"
    assert (folder / "run.sh").read_text() == "#!/bin/bash\n"
    assert os.access(folder / "run.sh", os.X_OK)
    assert (folder / "parameter.cfg").read_text() == "{}"
    assert (folder / "parameter.cfg").stat().st_mode & 0o111 == 0
    assert {name.name for name in folder.iterdir()} == {
        ".nni",
        "run.sh",
        "parameter.cfg",
        "stdout",
        "stderr",
        "trial.log",
    }
    output.cut()


async def test_modes_of_the_files_let_others_read(tmp_path: Path) -> None:
    opened(tmp_path).cut()

    hidden = os.umask(0)
    os.umask(hidden)
    folder = tmp_path / "aaaaa"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes["run.sh"] == 0o755 & ~hidden
    assert modes["parameter.cfg"] == modes["stdout"] == modes["stderr"] == 0o644 & ~hidden


async def test_log_is_a_link_where_a_file_cannot_have_two_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    for _ in range(2):
        (tmp_path / "aaaaa/trial.log").unlink(missing_ok=True)
        opened(tmp_path).cut()

    assert (tmp_path / "aaaaa/trial.log").readlink() == Path("stdout")


async def test_ended_output_holds_no_descriptor(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    output = opened(tmp_path)
    output.launched()
    writers = (output.stdout, output.stderr)
    output.cut()
    output.cut()

    assert writers == (-1, -1)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


async def test_last_4096_bytes_of_stderr_are_its_tail(tmp_path: Path) -> None:
    output = opened(tmp_path, limit_bytes=10_000)
    os.write(output.stderr, b"x" * 5000)
    output.cut()

    assert output.stderr_tail() == "x" * 4096


async def test_end_of_the_output_is_announced(tmp_path: Path) -> None:
    output = opened(tmp_path)
    ends: list[bool] = []
    output.watch(lambda: ends.append(output.at_end.done()))

    output.cut()

    assert ends == [True]


async def test_output_reaches_the_files_and_ends_with_its_writers(tmp_path: Path) -> None:
    output = opened(tmp_path)
    os.write(output.stdout, b"out\n")
    os.write(output.stderr, b"err\n")
    assert not output.catch_up()

    output.launched()
    await asyncio.wait_for(output.at_end, WAIT_S)

    assert (tmp_path / "aaaaa/stdout").read_bytes() == b"out\n"
    assert (tmp_path / "aaaaa/trial.log").read_bytes() == b"out\n"
    assert (tmp_path / "aaaaa/stderr").read_bytes() == b"err\n"
    assert output.stderr_tail() == "err"


async def test_output_is_open_as_long_as_one_of_its_streams(tmp_path: Path) -> None:
    output = opened(tmp_path)
    still_open = os.dup(output.stderr)
    output.launched()
    for _ in range(10):  # stdout has ended
        await asyncio.sleep(0)
    at_end = output.at_end.done()
    os.write(still_open, b"last\n")
    os.close(still_open)

    await asyncio.wait_for(output.at_end, WAIT_S)

    assert not at_end
    assert (tmp_path / "aaaaa/stderr").read_bytes() == b"last\n"


async def test_catching_up_sees_the_end_at_once(tmp_path: Path) -> None:
    output = opened(tmp_path)
    os.write(output.stdout, b"x" * 60_000)
    output.launched()

    assert output.catch_up()
    assert (tmp_path / "aaaaa/stdout").stat().st_size > 1000


async def test_output_is_cut_at_the_limit(tmp_path: Path) -> None:
    output = opened(tmp_path, limit_bytes=5)
    os.write(output.stdout, b"hello world")
    output.launched()
    await asyncio.wait_for(output.at_end, WAIT_S)

    text = (tmp_path / "aaaaa/stdout").read_bytes()
    assert text.startswith(b"hello\n[nni] output limit of 5 bytes")


async def test_of_endless_output_beginning_and_end_are_kept(tmp_path: Path) -> None:
    output = opened(tmp_path, limit_bytes=80)
    os.write(output.stderr, b"first" + b"x" * 1000 + b"last words")
    output.launched()
    await asyncio.wait_for(output.at_end, WAIT_S)

    text = (tmp_path / "aaaaa/stderr").read_bytes()
    assert text.startswith(b"first" + b"x" * 65 + b"\n[nni] output limit of 80 bytes")
    assert text.endswith(b"[nni] 935 bytes were dropped here; the last 10 bytes follow\nlast words")


async def test_cut_reads_the_pipe_although_a_writer_remains(
    tmp_path: Path,
) -> None:
    output = opened(tmp_path)
    holder = os.dup(output.stdout)
    os.write(holder, b"last lines")
    output.launched()

    output.cut()

    assert output.at_end.done()
    assert (tmp_path / "aaaaa/stdout").read_bytes() == b"last lines"
    os.close(holder)


async def test_watchers_are_notified_until_they_cancel(tmp_path: Path) -> None:
    output = opened(tmp_path)
    calls: list[int] = []
    cancel = output.watch(lambda: calls.append(1))
    os.write(output.stdout, b"x")
    output.catch_up()
    assert calls == [1]

    cancel()
    output.cut()

    assert calls == [1]


def test_folders_of_another_user_are_shared_by_group(tmp_path: Path) -> None:
    folders = DiskTrialFolders(1000, CodeUser(os.geteuid(), os.getegid()))

    for _ in range(2):
        folders.prepare(str(tmp_path / "trials" / "a"), "out")

    for place in (tmp_path / "trials" / "a", tmp_path / "trials" / "a" / "out"):
        assert place.stat().st_mode & stat.S_IWGRP


def test_folder_of_the_same_user_is_made_early_only_for_outputs(tmp_path: Path) -> None:
    folders = DiskTrialFolders(1000)

    folders.prepare(str(tmp_path / "a"))
    folders.prepare(str(tmp_path / "b"), "out")

    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b" / "out").is_dir()
    assert not (tmp_path / "b").stat().st_mode & stat.S_IWGRP


def test_folder_that_cannot_be_shared_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(LaunchError, match="cannot be shared"):
        DiskTrialFolders(1000).prepare(str(tmp_path / "file" / "a"), "out")


async def test_state_is_written(tmp_path: Path) -> None:
    output = opened(tmp_path)
    output.cut()

    output.write_state("0 123")

    assert (tmp_path / "aaaaa/.nni/state").read_text() == "0 123"


async def test_second_attempt_starts_with_empty_output(tmp_path: Path) -> None:
    first = opened(tmp_path)
    os.write(first.stdout, b"first")
    first.cut()

    opened(tmp_path).cut()

    assert (tmp_path / "aaaaa/stdout").read_bytes() == b""
    assert (tmp_path / "aaaaa/trial.log").read_bytes() == b""


async def test_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "aaaaa").write_text("in the way")

    with pytest.raises(LaunchError, match="aaaaa"):
        opened(tmp_path)


async def test_files_are_complete_though_the_system_writes_them_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, pieces = os.write, [4, 1, 100, 100]
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[: pieces.pop(0)]))

    output = opened(tmp_path)

    # `#!/bin/bash` and its end of line are twelve bytes; the last piece is for the parameters.
    assert (tmp_path / "aaaaa/run.sh").read_text() == "#!/bin/bash\n"
    output.cut()


async def test_first_error_of_a_series_of_output_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    output = opened(tmp_path)
    with capture_logs() as lines:
        for full in (True, True, False, True):
            os.write(output.stdout, b"x")
            with monkeypatch.context() as disk:
                if full:
                    disk.setattr(os, "write", refuse)
                output.catch_up()
    output.cut()

    assert [line["error"] for line in lines] == ["[Errno 28] No space left on device"] * 2
    assert (tmp_path / "aaaaa/stdout").read_bytes() == b"x"


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let this process open so many descriptors, and no more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest, taken = max(int(one.name) for one in Path("/proc/self/fd").iterdir()), [-1]
    while taken[-1] <= highest + count:  # each takes the lowest free number
        taken.append(os.open(os.devnull, os.O_RDONLY))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1, limits[1]))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for number in taken[1:]:
            os.close(number)


async def test_folder_that_fails_for_lack_of_descriptors_holds_none(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    # Two files and one pipe; the second pipe lacks one.
    with descriptors_left(5), pytest.raises(LaunchError, match="Too many open files"):
        opened(tmp_path)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_pipe_may_have_the_lowest_descriptor(tmp_path: Path) -> None:
    files = tuple(os.open(tmp_path / name, os.O_WRONLY | os.O_CREAT) for name in ("out", "err"))
    before = os.dup(0)
    os.close(0)  # as in a process that was started without an input
    try:
        output = OpenTrialFolder(str(tmp_path), (files[0], files[1]), 1000, SAME_USER)
        os.write(output.stdout, b"first")
        output.catch_up()
        caught_up = (tmp_path / "out").read_bytes()
        output.cut()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(0)
    finally:
        os.dup2(before, 0)
        os.close(before)

    assert caught_up == b"first"
    assert output.at_end.done()


def endless(output: OpenTrialFolder) -> list[int]:
    """Let a writer of stdout refill the pipe after each read; return the number of each call."""
    calls: list[int] = []

    def refill() -> None:
        calls.append(len(calls))
        if output.stdout >= 0:
            os.write(output.stdout, b"x")

    output.watch(refill)
    os.write(output.stdout, b"x")
    return calls


async def test_catching_up_ends_though_a_writer_does_not(tmp_path: Path) -> None:
    output = opened(tmp_path)
    calls = endless(output)

    assert not output.catch_up()

    assert len(calls) == 64
    output.cut()


async def test_cut_ends_though_a_writer_does_not(tmp_path: Path) -> None:
    output = opened(tmp_path)
    calls = endless(output)

    output.cut()

    assert output.at_end.done()
    assert len(calls) == 64 + 1  # the last one is for the end


async def test_writer_that_never_pauses_leaves_the_loop_to_others(tmp_path: Path) -> None:
    output = opened(tmp_path)
    calls = endless(output)

    while not calls:  # noqa: ASYNC110 - turns of the loop, in the first of which it reads
        await asyncio.sleep(0)

    assert len(calls) == 8
    output.cut()


async def test_pipes_are_not_inherited_by_other_processes(tmp_path: Path) -> None:
    output = opened(tmp_path)

    assert not os.get_inheritable(output.stdout)
    assert not os.get_inheritable(output.stderr)
    output.cut()


@pytest.mark.parametrize("name", ["run.sh", "parameter.cfg", "stdout", "stderr"])
async def test_link_that_an_earlier_attempt_has_left_is_not_followed(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "aaaaa").mkdir()
    (tmp_path / "precious").write_text("content")
    (tmp_path / "aaaaa" / name).symlink_to(tmp_path / "precious")

    with pytest.raises(LaunchError, match="cannot be written"):
        opened(tmp_path)

    assert (tmp_path / "precious").read_text() == "content"


async def test_lines_that_a_trial_appends_to_its_log_stay_between_those_of_its_output(
    tmp_path: Path,
) -> None:
    output = opened(tmp_path)
    os.write(output.stdout, b"one\n")
    output.catch_up()
    with (tmp_path / "aaaaa/trial.log").open("ab") as log:
        log.write(b"two\n")

    os.write(output.stdout, b"three\n")
    output.cut()

    assert (tmp_path / "aaaaa/trial.log").read_bytes() == b"one\ntwo\nthree\n"


async def test_output_ends_though_its_reader_waits_no_more(tmp_path: Path) -> None:
    output = opened(tmp_path)
    ends: list[bool] = []
    output.watch(lambda: ends.append(output.at_end.cancelled()))

    output.at_end.cancel()
    output.cut()

    assert ends == [True]


async def test_state_that_cannot_be_written_is_only_logged(tmp_path: Path) -> None:
    output = opened(tmp_path)
    output.cut()
    (tmp_path / "aaaaa/.nni").rmdir()

    with capture_logs() as lines:
        output.write_state("0 123")

    assert [(line["event"], line["folder"]) for line in lines] == [
        ("state not written", str(tmp_path / "aaaaa"))
    ]


async def test_first_trial_of_an_experiment_makes_its_folder(tmp_path: Path) -> None:
    opened(tmp_path / "experiment" / "trials").cut()

    assert (tmp_path / "experiment/trials/aaaaa/.nni").is_dir()


async def test_files_of_an_ended_trial_are_opened_to_the_services(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("")
    (tmp_path / "private").chmod(0o600)

    await DiskTrialFolders(1000).release(str(tmp_path))
    same_user = stat.S_IMODE((tmp_path / "private").stat().st_mode)
    await DiskTrialFolders(1000, CodeUser(os.geteuid(), os.getegid())).release(str(tmp_path))

    assert same_user == 0o600
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o660


class ActingUser(CodeUser):
    """Account of trials that notes when files are accessed as it."""

    acts = 0

    @contextmanager
    def acting(self) -> Iterator[None]:
        ActingUser.acts += 1
        yield


async def test_files_are_written_as_the_user_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ActingUser, "acts", 0)
    request = TrialFilesRequest(tmp_path / "aaaaa", "", "{}", 0)

    output = DiskTrialFolders(1000, ActingUser()).open(request)
    after_opening = ActingUser.acts
    output.cut()
    output.write_state("0 123")

    assert (after_opening, ActingUser.acts) == (1, 2)

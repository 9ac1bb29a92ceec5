import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError
from svc_trial_runner.adapters.claim_journal import FileClaimJournal
from svc_trial_runner.domain.claims import (
    AttemptKey,
    Claimed,
    Closed,
    DirectoryKnown,
    Ended,
    JournalRecord,
    ProcessIdentity,
    Progressed,
    Redelivered,
    ServerEnded,
    ServerStarted,
    Started,
)
from tests.support.unreadable_files import make_unreadable

KEY = AttemptKey("exp", "aaaaa", 1)
RECORDS: list[JournalRecord] = [
    DirectoryKnown("exp", "/a b"),
    ServerStarted(ProcessIdentity(5, 50)),
    Claimed(KEY, "c1", "t", "ack.1"),
    Redelivered("c1", "ack.2"),
    Started("c1", ProcessIdentity(7, 99)),
    Progressed("c1", 4),
    Ended("c1"),
    ServerStarted(ProcessIdentity(6, 60)),
    ServerEnded(ProcessIdentity(6, 60)),
]


def journal(folder: Path, boot_id: str = "boot") -> FileClaimJournal:
    return FileClaimJournal(folder / "claims.journal", boot_id)


def open_files(folder: Path) -> int:
    """Return the number of descriptors of this process for files of a folder, deleted or not."""
    number = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            number += str(link.readlink()).startswith(f"{folder}/")
    return number


def test_everything_survives(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.append(*RECORDS)
    state = first.state
    first.close()

    assert journal(tmp_path).state == state


def test_records_are_on_disk_before_append_returns(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.append(*RECORDS)

    lines = (tmp_path / "claims.journal").read_text().splitlines()

    assert len(lines) == 1 + len(RECORDS)


def test_cut_line_and_unknown_record_are_dropped(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.append(RECORDS[2])
    first.close()
    with (tmp_path / "claims.journal").open("a") as file:
        file.write('["of a later version", 1]\nnonsense\n["close", "c')

    assert list(journal(tmp_path).state.claims) == ["c1"]


def test_processes_of_an_earlier_boot_of_the_machine_are_forgotten(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.append(*RECORDS)
    first.close()

    state = journal(tmp_path, "another boot").state

    assert state.servers == []
    assert state.claims["c1"].leader is None


def test_second_agent_is_refused(tmp_path: Path) -> None:
    first = journal(tmp_path)

    with pytest.raises(FailedPreconditionError, match="NNI_HOME"):
        journal(tmp_path)

    first.close()
    journal(tmp_path).close()


def test_file_does_not_grow_with_closed_claims(tmp_path: Path) -> None:
    first = FileClaimJournal(tmp_path / "claims.journal", "boot", compact_bytes=2000)

    for number in range(500):
        first.append(Claimed(KEY, f"c{number}", "t", "ack"))
        first.append(Closed(f"c{number}"))
    first.append(RECORDS[2])
    first.close()

    assert (tmp_path / "claims.journal").stat().st_size < 4000
    assert list(journal(tmp_path).state.claims) == ["c1"]


def test_small_file_is_only_appended_to(tmp_path: Path) -> None:
    first = journal(tmp_path)
    file = (tmp_path / "claims.journal").stat().st_ino

    for number in range(500):
        first.append(Claimed(KEY, f"c{number}", "t", "ack"), Closed(f"c{number}"))

    assert (tmp_path / "claims.journal").stat().st_ino == file
    assert len((tmp_path / "claims.journal").read_text().splitlines()) == 1001
    first.close()


def test_swept_servers_are_forgotten(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.append(*RECORDS)

    first.forget_servers()
    first.close()

    assert journal(tmp_path).state.servers == []


def test_only_this_user_may_read_it(tmp_path: Path) -> None:
    journal(tmp_path).close()

    assert (tmp_path / "claims.journal").stat().st_mode & 0o077 == 0
    assert (tmp_path / "claims.journal.lock").stat().st_mode & 0o777 == 0o600


GOOD = '["claim", "exp", "aaaaa", 1, "c1", "t", "ack.1"]\n'


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '["claim", "exp", "bbbbb", "one", "c2", "t", "ack"]',
        '["claim", "exp", "bbbbb", -1, "c2", "t", "ack"]',
        '["claim", "exp.>", "bbbbb", 1, "c2", "t", "ack"]',
        '["claim", "exp", "bbbbb", 1, ["c2"], "t", "ack"]',
        '["claim", "exp"]',
        '["again", {}, "ack"]',
        '["start", "c1", "5", 3]',
        '["start", "c1", 0, 3]',
        '["start", "c1", 1, 3]',
        '["start", "c1", 2147483648, 3]',
        '["start", "c1", 5, "3"]',
        '["next", "c1", null]',
        '["next", "c1", 1e300]',
        '["next", "c1", 2147483648]',
        '["end", ["c1"]]',
        '["close", {}]',
        '["server", null, null]',
        '["folder", 1, 2]',
        '["folder", "exp", "/b", 3]',
        '["again", "c1", "ack.9", "more"]',
        "[]",
        "7",
        "{}",
        "nonsense",
        "\x00\x01",
    ],
)
def test_damaged_line_is_left_out_and_the_file_set_aside(tmp_path: Path, line: str) -> None:
    path = tmp_path / "claims.journal"
    path.write_text(f'["boot", "boot"]\n{GOOD}{line}\n["folder", "exp", "/a"]\n')

    state = journal(tmp_path).state

    assert list(state.claims) == ["c1"]
    assert state.claims["c1"].leader is None
    assert state.directories == {"exp": "/a"}
    (aside,) = tmp_path.glob("claims.journal.damaged-*")
    assert line in aside.read_text()


def test_smallest_and_largest_numbers_are_read(tmp_path: Path) -> None:
    lines = [
        '["start", "c1", 2, 0]',
        '["next", "c1", 2147483647]',
        '["server", 2147483647, 0]',
        '["claim", "exp", "bbbbb", 0, "c2", "t", "ack.2"]',
        '["next", "c2", 0]',
    ]
    (tmp_path / "claims.journal").write_text("\n".join(['["boot", "boot"]', GOOD[:-1], *lines, ""]))

    state = journal(tmp_path).state

    assert state.claims["c1"].leader == ProcessIdentity(2, 0)
    assert state.claims["c1"].next_sequence == 2**31 - 1
    assert state.servers == [ProcessIdentity(2**31 - 1, 0)]
    assert state.claims["c2"].key.attempt == 0
    assert list(tmp_path.glob("*.damaged-*")) == []


def test_file_is_compacted_beyond_four_mebibytes(tmp_path: Path) -> None:
    path = tmp_path / "claims.journal"
    first = journal(tmp_path)
    line = '["again", "c9", ""]\n'

    files = [path.stat().st_ino]
    for text in ("x" * (4 * 2**20 - len(line)), "", ""):
        first.append(Redelivered("c9", text))
        files.append(path.stat().st_ino)
    first.close()

    assert [file == files[0] for file in files] == [True, True, True, False]


def test_compaction_does_not_trigger_the_next_one_and_leaves_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "claims.journal"
    first = FileClaimJournal(path, "boot", compact_bytes=1)
    opened = open_files(tmp_path)

    sizes = []
    for _ in range(5):
        first.append(Closed("c9"))
        sizes.append(len(path.read_text().splitlines()))
    left_open = open_files(tmp_path)
    first.close()

    assert sizes == [2, 1, 2, 1, 2]
    assert left_open == opened


def test_file_is_only_appended_to_again_after_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "claims.journal"
    first = journal(tmp_path)

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        first.append(Closed("c9"))
    first.append(Closed("c9"))
    rewritten = len(path.read_text().splitlines())
    first.append(Closed("c9"))
    first.close()

    assert (rewritten, len(path.read_text().splitlines())) == (1, 2)


def test_journal_may_be_closed_twice(tmp_path: Path) -> None:
    first = journal(tmp_path)
    with pytest.raises(FailedPreconditionError, match="another agent uses"):
        journal(tmp_path)

    first.close()
    first.close()

    assert open_files(tmp_path) == 0


@pytest.mark.parametrize("name", ["claims.journal", "claims.journal.lock", "claims.new"])
def test_folder_in_place_of_a_file_keeps_nothing_from_starting(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    first = journal(tmp_path)
    first.append(*RECORDS)
    first.close()

    assert list(journal(tmp_path).state.claims) == ["c1"]


def test_unreadable_file_keeps_nothing_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = journal(tmp_path)
    first.append(*RECORDS)
    first.close()
    make_unreadable(monkeypatch, tmp_path / "claims.journal")

    assert not journal(tmp_path).state.claims
    assert len(list(tmp_path.glob("claims.journal.damaged-*"))) == 1


def test_bytes_that_are_no_text_keep_nothing_from_starting(tmp_path: Path) -> None:
    (tmp_path / "claims.journal").write_bytes(b"\xff\xfe\n\xff\n" + GOOD.encode())

    assert list(journal(tmp_path).state.claims) == ["c1"]


def test_file_does_not_grow_with_servers_that_have_ended(tmp_path: Path) -> None:
    first = FileClaimJournal(tmp_path / "claims.journal", "boot", compact_bytes=2000)

    for number in range(2, 500):
        first.append(ServerStarted(ProcessIdentity(number, 50)))
        first.append(ServerEnded(ProcessIdentity(number, 50)))
    first.close()

    assert (tmp_path / "claims.journal").stat().st_size < 4000
    assert journal(tmp_path).state.servers == []


@pytest.mark.parametrize("taken", [None, 0, 7])
def test_records_that_a_full_disk_refuses_are_written_when_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int | None
) -> None:
    first = journal(tmp_path)
    write = os.write

    def write_little(file: int, data: bytes) -> int:
        if taken is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data[:taken])

    with monkeypatch.context() as full:
        full.setattr(os, "write", write_little)
        first.append(RECORDS[2])
    first.append(RECORDS[3])
    first.close()

    assert journal(tmp_path).state.claims["c1"].ack_subject == "ack.2"
    assert list(tmp_path.glob("*.damaged-*")) == []


def test_file_that_cannot_be_opened_after_a_compaction_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "claims.journal"
    first = FileClaimJournal(path, "boot", compact_bytes=1)
    first.append(RECORDS[2])
    opens = os.open

    def refuse(name: str | Path, *rest: int, **options: int) -> int:
        if name == path:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opens(name, *rest, **options)

    with monkeypatch.context() as full:
        full.setattr(os, "open", refuse)
        first.append(RECORDS[3])
    first.append(RECORDS[4])
    first.close()

    assert journal(tmp_path).state.claims["c1"].leader == ProcessIdentity(7, 99)

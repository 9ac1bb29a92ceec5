"""Complete copies of a trial's checkpoint folder."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from svc_common.code_user import CodeUser
from svc_trial_runner.adapters.checkpoint_copies import DiskCheckpointCopies
from svc_trial_runner.adapters.trial_blobs import TarFolders
from svc_trial_runner.domain.tasks import TrialCheckpoint

FIRST = TrialCheckpoint(10, 1, 1)
SECOND = TrialCheckpoint(-3, 1, 2)


@pytest.fixture
def copies() -> DiskCheckpointCopies:
    return DiskCheckpointCopies(TarFolders())


def write(trial: Path, text: str) -> None:
    (trial / "checkpoint").mkdir(exist_ok=True)
    (trial / "checkpoint/model").write_text(text)


def test_a_copy_keeps_its_content_while_the_trial_writes_on(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    write(tmp_path, "one")

    copy = copies.complete(str(tmp_path), FIRST)
    with (tmp_path / "checkpoint/model").open("r+") as file:
        file.write("two")

    assert (copy / "model").read_text() == "one"
    assert copies.last(str(tmp_path)) == FIRST


def test_a_newer_copy_replaces_the_earlier_one(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    write(tmp_path, "one")
    copies.complete(str(tmp_path), FIRST)
    write(tmp_path, "two")

    copies.complete(str(tmp_path), SECOND)

    assert copies.last(str(tmp_path)) == SECOND
    assert len(list((tmp_path / ".checkpoint").iterdir())) == 1


def test_a_copy_that_fails_leaves_the_earlier_one(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    write(tmp_path, "one")
    copies.complete(str(tmp_path), FIRST)
    (tmp_path / "checkpoint/model").unlink()
    (tmp_path / "checkpoint").rmdir()

    with pytest.raises(OSError, match="checkpoint"):
        copies.complete(str(tmp_path), SECOND)

    assert copies.last(str(tmp_path)) == FIRST
    assert len(list((tmp_path / ".checkpoint").iterdir())) == 1


def test_an_unfinished_copy_does_not_count_and_is_removed(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    (tmp_path / ".checkpoint/unfinished.1.1.10").mkdir(parents=True)

    copies.restore(str(tmp_path), None)

    assert copies.last(str(tmp_path)) is None
    assert list((tmp_path / ".checkpoint").iterdir()) == []


def test_restoration_removes_what_was_written_since(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    write(tmp_path, "one")
    copies.complete(str(tmp_path), FIRST)
    write(tmp_path, "half")
    (tmp_path / "checkpoint/more").touch()

    copies.restore(str(tmp_path), FIRST)

    assert [one.name for one in (tmp_path / "checkpoint").iterdir()] == ["model"]
    assert (tmp_path / "checkpoint/model").read_text() == "one"


def test_restoration_goes_on_though_an_unfinished_copy_cannot_be_removed(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    write(tmp_path, "one")
    copies.complete(str(tmp_path), FIRST)
    # A trial may write there, and a link in place of a folder is not removed.
    (tmp_path / ".checkpoint/unfinished.2.1.11").symlink_to(tmp_path)
    write(tmp_path, "half")

    copies.restore(str(tmp_path), FIRST)

    assert (tmp_path / "checkpoint/model").read_text() == "one"


def test_restoration_without_a_copy_leaves_no_folder(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    write(tmp_path, "half")

    copies.restore(str(tmp_path), None)

    assert not (tmp_path / "checkpoint").exists()


def test_restoration_follows_no_link_in_place_of_the_folder(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (tmp_path / "checkpoint").symlink_to(elsewhere)

    copies.restore(str(tmp_path), None)

    assert (elsewhere / "file").exists()
    assert not (tmp_path / "checkpoint").is_symlink()


def test_a_packed_copy_comes_back_on_another_machine(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    write(here, "one")
    archive = copies.pack(copies.complete(str(here), FIRST))
    arrived = copies.archive_path(str(there))
    archive.rename(arrived)

    copies.add(str(there), FIRST, arrived)
    copies.restore(str(there), copies.last(str(there)))

    assert (there / "checkpoint/model").read_text() == "one"


def test_link_in_a_checkpoint_stays_a_link(copies: DiskCheckpointCopies, tmp_path: Path) -> None:
    write(tmp_path, "one")
    (tmp_path / "checkpoint/last").symlink_to("model")

    copy = copies.complete(str(tmp_path), FIRST)
    copies.restore(str(tmp_path), FIRST)

    assert (copy / "last").readlink() == Path("model")
    assert (tmp_path / "checkpoint/last").readlink() == Path("model")


def test_no_copy_is_left_when_they_are_discarded(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    write(tmp_path, "one")
    copies.complete(str(tmp_path), FIRST)

    for _ in range(2):
        copies.discard(str(tmp_path))

    assert copies.last(str(tmp_path)) is None
    assert (tmp_path / "checkpoint/model").exists()


def test_archive_is_unpacked_although_a_killed_agent_has_begun_to(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    trial, other = tmp_path / "trial", tmp_path / "other"
    trial.mkdir()
    write(trial, "one")
    archive = copies.pack(copies.complete(str(trial), FIRST))
    left = copies.archive_path(str(other)).parent / "unfinished.1.1.10"
    left.mkdir()
    (left / "model").write_text("half")

    copies.add(str(other), FIRST, archive)
    copies.restore(str(other), FIRST)

    assert (other / "checkpoint/model").read_text() == "one"


def test_archive_is_not_written_where_a_link_of_a_trial_points(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    trial, elsewhere = tmp_path / "trial", tmp_path / "elsewhere"
    trial.mkdir()
    elsewhere.mkdir()
    (trial / ".checkpoint").symlink_to(elsewhere)

    copies.archive_path(str(trial)).write_text("archive")

    assert list(elsewhere.iterdir()) == []


def test_last_copy_is_that_of_the_last_attempt_and_number(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    for name in ("1.2.30", "2.1.5", "1.10.40", "3.1.7.new", "unfinished.4.1.8"):
        (tmp_path / ".checkpoint" / name).mkdir(parents=True)
    (tmp_path / ".checkpoint/5.1.9").touch()  # no folder, so no copy

    assert copies.last(str(tmp_path)) == TrialCheckpoint(5, 2, 1)


def test_copy_of_a_later_attempt_stays(copies: DiskCheckpointCopies, tmp_path: Path) -> None:
    (tmp_path / ".checkpoint/2.1.5").mkdir(parents=True)
    write(tmp_path, "one")

    copies.complete(str(tmp_path), FIRST)

    assert copies.last(str(tmp_path)) == TrialCheckpoint(5, 2, 1)


def test_link_in_place_of_the_archive_is_replaced(
    copies: DiskCheckpointCopies, tmp_path: Path
) -> None:
    write(tmp_path, "one")
    copy = copies.complete(str(tmp_path), FIRST)
    (tmp_path / "precious").write_text("content")
    (tmp_path / ".checkpoint/archive.tar").symlink_to(tmp_path / "precious")

    archive = copies.pack(copy)

    assert (tmp_path / "precious").read_text() == "content"
    assert archive == tmp_path / ".checkpoint/archive.tar"
    assert not archive.is_symlink()


class ActingUser(CodeUser):
    """Account of trials that notes when files are accessed as it."""

    acts = 0

    @contextmanager
    def acting(self) -> Iterator[None]:
        ActingUser.acts += 1
        yield


def test_every_access_is_one_of_the_user_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ActingUser, "acts", 0)
    copies, directory = DiskCheckpointCopies(TarFolders(), ActingUser()), str(tmp_path)
    write(tmp_path, "one")
    steps: list[Callable[[], object]] = [
        lambda: copies.complete(directory, FIRST),
        lambda: copies.last(directory),
        lambda: copies.restore(directory, FIRST),
        lambda: copies.archive_path(directory),
        lambda: copies.pack(tmp_path / ".checkpoint/1.1.10"),
        lambda: copies.add(directory, SECOND, tmp_path / ".checkpoint/archive.tar"),
        lambda: copies.discard(directory),
    ]
    acts = [0]

    for step in steps:
        step()
        acts.append(ActingUser.acts)

    assert acts == [0, 1, 2, 3, 4, 5, 7, 8]

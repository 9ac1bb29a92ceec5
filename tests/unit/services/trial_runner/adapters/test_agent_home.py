import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError
from svc_trial_runner.adapters.agent_home import AgentHome


def test_folder_is_private_and_has_the_authority(tmp_path: Path) -> None:
    folder = tmp_path / "agents/one"
    home = AgentHome(folder)
    home.open("PEM")

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "authority.pem").read_text() == "PEM"
    home.close(remove=False)


def test_folder_belongs_to_one_agent_at_a_time(tmp_path: Path) -> None:
    first, second = AgentHome(tmp_path / "one"), AgentHome(tmp_path / "one")
    first.open()

    with pytest.raises(FailedPreconditionError, match="another agent of this name"):
        second.open()
    first.close(remove=False)
    second.close(remove=False)
    third = AgentHome(tmp_path / "one")
    third.open()
    third.close(remove=False)


def test_agent_that_was_refused_does_not_remove_the_folder_of_the_other(tmp_path: Path) -> None:
    first, second = AgentHome(tmp_path / "one"), AgentHome(tmp_path / "one")
    first.open()
    with pytest.raises(FailedPreconditionError):
        second.open()

    second.close(remove=True)

    assert (tmp_path / "one").exists()
    first.close(remove=False)


@pytest.mark.parametrize("remove", [True, False])
def test_folder_stays_unless_it_is_to_be_removed(tmp_path: Path, *, remove: bool) -> None:
    home = AgentHome(tmp_path / "one")
    home.open()
    (tmp_path / "one/trials/t").mkdir(parents=True)

    home.close(remove=remove)
    home.close(remove=remove)

    assert (tmp_path / "one").exists() is not remove


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(FailedPreconditionError, match=r"file/one.*cannot be used"):
        AgentHome(tmp_path / "file/one").open()


def test_folder_without_an_authority_has_only_its_private_lock(tmp_path: Path) -> None:
    home = AgentHome(tmp_path / "one")
    home.open()

    (lock,) = (tmp_path / "one").iterdir()
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    home.close(remove=False)


def refuse_locks(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let each lock of a file fail with an error of the operating system."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_file_system_without_locks_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse_locks(monkeypatch, number)
    home = AgentHome(tmp_path / "one")

    home.open()
    home.close(remove=True)

    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize("number", [errno.EIO, errno.EWOULDBLOCK])
def test_lock_that_fails_refuses_the_folder_and_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse_locks(monkeypatch, number)
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(FailedPreconditionError):
        AgentHome(tmp_path / "one").open()

    assert len(list(Path("/proc/self/fd").iterdir())) == before

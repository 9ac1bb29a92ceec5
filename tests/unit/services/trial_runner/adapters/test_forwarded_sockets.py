import os
from pathlib import Path

import pytest

from svc_common.errors import UnavailableError
from svc_trial_runner.adapters.forwarded_sockets import CURRENT_NAME, ForwardedSockets


def connect(folder: Path, name: str) -> None:
    (folder / CURRENT_NAME).write_text(name)


def test_each_connection_has_its_sockets(tmp_path: Path) -> None:
    sockets = ForwardedSockets(tmp_path)
    for name in ("c1", "c1\n", "c2"):
        connect(tmp_path, name)

        assert sockets.bus() == tmp_path / name.strip() / "bus.sock"
        assert (tmp_path / "manager.sock").readlink() == Path(name.strip(), "manager.sock")


def test_link_of_a_predecessor_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "manager.sock").symlink_to("c0/manager.sock")
    connect(tmp_path, "c1")

    ForwardedSockets(tmp_path).bus()

    assert (tmp_path / "manager.sock").readlink() == Path("c1/manager.sock")
    assert sorted(path.name for path in tmp_path.iterdir()) == [CURRENT_NAME, "manager.sock"]


def test_no_connection_is_an_error_that_a_later_try_may_not_have(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no forward is connected"):
        ForwardedSockets(tmp_path).bus()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "x" * 300])
def test_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    connect(tmp_path, name)

    with pytest.raises(UnavailableError):
        ForwardedSockets(tmp_path).bus()


def test_link_is_left_alone_while_the_connection_lasts(tmp_path: Path) -> None:
    sockets = ForwardedSockets(tmp_path)
    connect(tmp_path, "c1")
    sockets.bus()
    before = (tmp_path / "manager.sock").lstat().st_ino

    sockets.bus()

    assert (tmp_path / "manager.sock").lstat().st_ino == before


def test_draft_that_an_earlier_process_has_left_is_replaced(tmp_path: Path) -> None:
    connect(tmp_path, "c1")
    (tmp_path / f".manager.sock.{os.getpid()}").write_text("left")

    ForwardedSockets(tmp_path).bus()

    assert (tmp_path / "manager.sock").readlink() == Path("c1/manager.sock")

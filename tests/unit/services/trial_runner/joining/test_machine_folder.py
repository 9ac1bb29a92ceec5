"""Tests of the folder of a machine that joins a pool."""

import stat
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError
from svc_trial_runner.adapters.agent_home import AgentHome
from svc_trial_runner.joining.machine_folder import MachineFolder, folder_name


def test_id_of_a_machine_stays_and_is_private(tmp_path: Path) -> None:
    first = MachineFolder(tmp_path / "pool").machine_id()

    assert MachineFolder(tmp_path / "pool").machine_id() == first
    assert stat.S_IMODE((tmp_path / "pool/machine-id").stat().st_mode) == 0o600


def test_damaged_id_is_drawn_again(tmp_path: Path) -> None:
    folder = MachineFolder(tmp_path / "pool")
    (tmp_path / "pool/machine-id").write_text("me")

    assert len(folder.machine_id()) == 64


def test_folders_of_killed_agents_are_removed_and_those_of_running_ones_stay(
    tmp_path: Path,
) -> None:
    folder = MachineFolder(tmp_path / "pool")
    killed, running = folder.agent("killed"), folder.agent("running")
    killed.mkdir()
    home = AgentHome(running)
    home.open()
    try:
        new = folder.agent("new")
    finally:
        home.close(remove=False)

    assert not killed.exists()
    assert running.exists()
    assert new == tmp_path / "pool/agents/new"


def test_folder_of_an_agent_that_has_ended_is_removed(tmp_path: Path) -> None:
    folder = MachineFolder(tmp_path / "pool")
    ended = folder.agent("ended")
    home = AgentHome(ended)
    home.open()
    home.close(remove=False)

    same = folder.agent("ended")
    kept = ended.exists()
    folder.agent("new")

    assert (same, kept) == (ended, True)
    assert not ended.exists()


def test_folder_whose_lock_cannot_be_opened_stays(tmp_path: Path) -> None:
    folder = MachineFolder(tmp_path / "pool")
    strange = folder.agent("strange")
    strange.mkdir()
    (strange / "agent.lock").symlink_to(tmp_path / "nowhere")

    folder.agent("new")

    assert strange.exists()


def test_long_names_are_cut(tmp_path: Path) -> None:
    name = folder_name("a" * 64, "p" * 65, "h" * 65)

    assert name == f"{'a' * 16}-{'p' * 64}-{'h' * 64}"


def test_machines_with_a_shared_home_have_a_folder_each() -> None:
    one = folder_name("a" * 64, "desks", "node-1")

    assert one == f"{'a' * 16}-desks-node-1"
    assert folder_name("a" * 64, "desks", "node-2") != one
    assert folder_name("a" * 64, "others", "node-1") != one


def test_name_of_a_folder_leads_nowhere_else() -> None:
    assert folder_name("a" * 64, "../x", "b/c") == f"{'a' * 16}-.._x-b_c"


def test_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FailedPreconditionError, match="--folder"):
        MachineFolder(tmp_path / "file" / "pool")


def test_looks_at_locks_leave_no_descriptor_open(tmp_path: Path) -> None:
    folder = MachineFolder(tmp_path / "pool")
    home = AgentHome(folder.agent("running"))
    home.open()
    before = len(list(Path("/proc/self/fd").iterdir()))

    folder.agent("new")

    assert len(list(Path("/proc/self/fd").iterdir())) == before
    home.close(remove=False)


@pytest.mark.parametrize("known", ["a" * 63, "a" * 65, "A" * 64, ""])
def test_id_of_another_form_is_drawn_again(tmp_path: Path, known: str) -> None:
    folder = MachineFolder(tmp_path / "pool")
    (tmp_path / "pool/machine-id").write_text(known)

    drawn = folder.machine_id()

    assert drawn != known
    assert len(drawn) == 64
    assert (tmp_path / "pool/machine-id").read_text() == f"{drawn}\n"


def test_id_is_that_of_the_file(tmp_path: Path) -> None:
    folder = MachineFolder(tmp_path / "pool")
    (tmp_path / "pool/machine-id").write_text(f"{'0123456789abcdef' * 4}\n")

    assert folder.machine_id() == "0123456789abcdef" * 4


@pytest.mark.parametrize("content", [None, b"\xff"], ids=["folder", "no text"])
def test_id_that_cannot_be_read_is_an_error_that_names_the_file(
    tmp_path: Path, content: bytes | None
) -> None:
    folder = MachineFolder(tmp_path / "pool")
    file = tmp_path / "pool/machine-id"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)

    with pytest.raises(FailedPreconditionError, match="machine-id cannot be used"):
        folder.machine_id()


def test_folders_are_private(tmp_path: Path) -> None:
    MachineFolder(tmp_path / "pool")

    for folder in (tmp_path / "pool", tmp_path / "pool/agents"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

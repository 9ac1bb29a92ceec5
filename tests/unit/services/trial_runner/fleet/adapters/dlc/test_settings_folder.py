from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.dlc.settings_folder import SettingsFolder, path_in_container
from svc_trial_runner.fleet.ports import PlatformError


def test_settings_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    SettingsFolder(str(tmp_path), "0123abcd").write("a-1", b"{}")

    file = tmp_path / "nni-agents-0123abcd" / "a-1" / "settings.json"
    assert file.read_bytes() == b"{}"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_last_removed_folder_leaves_nothing(tmp_path: Path) -> None:
    folder = SettingsFolder(str(tmp_path), "0123abcd")
    folder.write("a-1", b"{}")
    folder.write("a-2", b"{}")

    folder.remove("a-1")
    assert folder.names() == ["a-2"]
    folder.remove("a-2")

    assert list(tmp_path.iterdir()) == []


def test_missing_folder_names_no_agents(tmp_path: Path) -> None:
    folder = SettingsFolder(str(tmp_path), "0123abcd")

    folder.remove("a-1")

    assert folder.names() == []


def test_mount_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    assert SettingsFolder(str(tmp_path), "0123abcd").problem() == ""
    assert "must be a folder" in SettingsFolder(str(tmp_path / "nas"), "0123abcd").problem()


def test_nothing_is_written_where_the_nas_is_not_mounted(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="settings of agents cannot be written"):
        SettingsFolder(str(tmp_path / "nas"), "0123abcd").write("a-1", b"{}")

    assert list(tmp_path.iterdir()) == []


def test_containers_find_the_settings_below_their_mount() -> None:
    path = path_in_container("/root/data/", "0123abcd", "a-1")

    assert path == "/root/data/nni-agents-0123abcd/a-1/settings.json"


def test_settings_may_be_written_again(tmp_path: Path) -> None:
    folder = SettingsFolder(str(tmp_path), "0123abcd")

    for content in (b"{}", b'{"slots": 2}'):
        folder.write("a-1", content)

    file = tmp_path / "nni-agents-0123abcd" / "a-1" / "settings.json"
    assert file.read_bytes() == b'{"slots": 2}'


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_mount_that_may_not_be_written_to_is_a_problem(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    assert SettingsFolder(str(tmp_path), "0123abcd").problem() == (
        "must be a folder that you may write to"
    )
    tmp_path.chmod(0o700)


def test_names_are_sorted(tmp_path: Path) -> None:
    folder = SettingsFolder(str(tmp_path), "0123abcd")
    for name in ("b", "c", "a"):
        folder.write(name, b"{}")

    assert folder.names() == ["a", "b", "c"]
    assert (tmp_path / "nni-agents-0123abcd").stat().st_mode & 0o777 == 0o700


def test_mount_without_a_slash_at_its_end_is_the_same() -> None:
    assert path_in_container("/data", "i", "a") == path_in_container("/data/", "i", "a")

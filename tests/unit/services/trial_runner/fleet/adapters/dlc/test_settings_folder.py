from __future__ import annotations

from pathlib import Path

from svc_trial_runner.fleet.adapters.dlc.settings_folder import SettingsFolder, path_in_container


def test_settings_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    SettingsFolder(str(tmp_path)).write("a-1", b"{}")

    file = tmp_path / "nni-agents" / "a-1" / "settings.json"
    assert file.read_bytes() == b"{}"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_last_removed_folder_leaves_nothing(tmp_path: Path) -> None:
    folder = SettingsFolder(str(tmp_path))
    folder.write("a-1", b"{}")
    folder.write("a-2", b"{}")

    folder.remove("a-1")
    assert folder.names() == ["a-2"]
    folder.remove("a-2")

    assert list(tmp_path.iterdir()) == []


def test_mount_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    assert SettingsFolder(str(tmp_path)).problem() == ""
    assert "must be a folder" in SettingsFolder(str(tmp_path / "nas")).problem()


def test_containers_find_the_settings_below_their_mount() -> None:
    assert path_in_container("/root/data/", "a-1") == "/root/data/nni-agents/a-1/settings.json"

"""The log file of one experiment's algorithm."""

import re
from pathlib import Path

import pytest

from svc_dispatcher.adapters.dispatcher_log import DispatcherLog


def test_lines_have_the_format_of_the_hosts_own(tmp_path: Path) -> None:
    log = DispatcherLog(tmp_path)

    log.note("ERROR", "it ended")

    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ERROR \(svc_dispatcher/MainThread\) it ended\n",
        (tmp_path / "dispatcher.log").read_text(),
    )


def test_last_line_is_of_this_run_only(tmp_path: Path) -> None:
    (tmp_path / "dispatcher.log").write_text("of an earlier run\n")
    log = DispatcherLog(tmp_path)

    before = log.last_line()
    with log.path.open("ab") as output:
        output.write(b"x" * 5_000 + b"\nValueError: \xff\n\n")

    assert before == ""
    assert log.last_line() == "ValueError: \N{REPLACEMENT CHARACTER}"


def test_removed_folder_costs_the_line_only(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    log = DispatcherLog(folder)
    log.path.unlink()
    folder.rmdir()

    log.note("ERROR", "lost")

    assert log.last_line() == ""


def test_line_is_not_written_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "log").mkdir()
    log = DispatcherLog(tmp_path / "log")
    log.path.unlink()
    log.path.symlink_to("../secret")

    log.note("ERROR", "it ended")

    assert (tmp_path / "secret").read_text() == "secret"
    assert log.last_line() == ""
    with pytest.raises(OSError, match="link"):
        DispatcherLog(tmp_path / "log")

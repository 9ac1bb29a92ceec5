"""Log file of a process with user code."""

import re
from pathlib import Path

import pytest

from svc_common.process_log import ProcessLog


def test_lines_have_the_format_of_the_hosts_own(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path, "strategy.log", "svc_nas")

    log.note("ERROR", "it ended")

    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ERROR \(svc_nas/MainThread\) it ended\n",
        (tmp_path / "strategy.log").read_text(),
    )


def test_last_line_is_of_this_run_only(tmp_path: Path) -> None:
    (tmp_path / "strategy.log").write_text("of an earlier run\n")
    log = ProcessLog(tmp_path, "strategy.log", "svc_nas")

    before = log.last_line()
    with log.path.open("ab") as output:
        output.write(b"x" * 5_000 + b"\nValueError: \xff\n\n")

    assert before == ""
    assert log.last_line() == "ValueError: \N{REPLACEMENT CHARACTER}"


def test_removed_folder_costs_the_line_only(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    log = ProcessLog(folder, "strategy.log", "svc_nas")
    log.path.unlink()
    folder.rmdir()

    log.note("ERROR", "lost")

    assert log.last_line() == ""


def test_line_is_not_written_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "log").mkdir()
    log = ProcessLog(tmp_path / "log", "strategy.log", "svc_nas")
    log.path.unlink()
    log.path.symlink_to("../secret")

    log.note("ERROR", "it ended")

    assert (tmp_path / "secret").read_text() == "secret"
    assert log.last_line() == ""
    with pytest.raises(OSError, match="link"):
        ProcessLog(tmp_path / "log", "strategy.log", "svc_nas")

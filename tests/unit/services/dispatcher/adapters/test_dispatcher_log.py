"""The log file of one experiment's algorithm."""

import re
from pathlib import Path

from svc_dispatcher.adapters.dispatcher_log import DispatcherLog


def test_lines_have_the_format_of_the_hosts_own(tmp_path: Path) -> None:
    log = DispatcherLog(tmp_path)

    log.note("ERROR", "it ended")

    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ERROR \(svc_dispatcher/MainThread\) it ended\n",
        (tmp_path / "dispatcher.log").read_text(),
    )

"""Command line of a strategy's process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_process_ends_with_its_service(tmp_path: Path) -> None:
    child_in, commands = os.pipe()
    outputs, child_out = os.pipe()
    os.close(commands)

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "nni.nas.host",
            "--in-fd",
            str(child_in),
            "--out-fd",
            str(child_out),
        ],
        cwd=tmp_path,
        pass_fds=(child_in, child_out),
        capture_output=True,
        text=True,
        check=False,
    )
    for descriptor in (child_in, child_out, outputs):
        os.close(descriptor)

    assert (done.returncode, done.stderr) == (0, "")


def test_process_of_another_parent_does_not_start(tmp_path: Path) -> None:
    command = ["--in-fd", "0", "--out-fd", "1", "--parent-pid", "1"]

    done = subprocess.run(
        [sys.executable, "-m", "nni.nas.host", *command],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1

import subprocess
import sys

ASK = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
"""Prints 0 if other processes of the user cannot inspect this one, else 1."""
SCRIPT = f"""
import subprocess, sys
from svc_common.inspection import forbid_inspection
forbid_inspection()
{ASK}
sys.stdout.flush()
subprocess.run([sys.executable, "-c", {ASK!r}], check=True)
"""


def test_process_cannot_be_inspected_and_its_children_can() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["0", "1"]

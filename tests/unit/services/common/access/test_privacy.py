import subprocess
import sys

ASK = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
"""Prints 0 if the kernel lets nobody of the same user look into the process, else 1."""
SCRIPT = f"""
import subprocess, sys
from svc_common.access.privacy import keep_to_itself
keep_to_itself()
{ASK}
sys.stdout.flush()
subprocess.run([sys.executable, "-c", {ASK!r}], check=True)
"""


def test_process_is_closed_to_others_and_what_it_starts_is_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["0", "1"]

"""The manager's entry point, as a process."""

import os
import subprocess
import sys


def test_a_missing_setting_ends_the_process_with_its_name() -> None:
    environment = {key: text for key, text in os.environ.items() if not key.startswith("NNI_")}

    done = subprocess.run(
        [sys.executable, "-m", "svc_manager"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode != 0
    assert "NNI_NATS_URL" in done.stdout + done.stderr

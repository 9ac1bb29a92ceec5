import subprocess
import sys


def test_module_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nni_benchmark", "no-such-command"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "invalid choice: 'no-such-command'" in done.stderr

"""What does `import nni` cost a trial, and what does one call of `nni-trial` cost a shell script?

Targets: an interpreter that imports nni starts and ends within 30 ms, `nni-trial` as well. Wall
time of whole processes, beside an interpreter that does nothing.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nni.trial.launcher import write_launcher
from tests.benchmarks.measure import print_figure, print_header
from tests.support.trial_agent import TrialAgent

ROUNDS = 40
TRIAL = (
    "import nni; nni.get_next_parameter(); nni.report_intermediate_result(1);"
    "nni.report_final_result(1)"
)


def time_ms(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    print_header(str(__doc__))
    with tempfile.TemporaryDirectory() as name, TrialAgent(Path(name), {"lr": 0.1}) as agent:
        script = str(write_launcher(Path(name)))
        environment = {**os.environ, **agent.environment()}
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "python -c 'import nni'": [sys.executable, "-c", "import nni"],
            "python, one trial with two reports": [sys.executable, "-c", TRIAL],
            "python -ISs -c pass": [sys.executable, "-ISs", "-c", "pass"],
            "nni-trial get lr": [script, "get", "lr"],
            "nni-trial report 1": [script, "report", "1"],
        }
        for command in commands.values():
            time_ms(command, environment)  # writes what Python caches
        # Round after round, so that a change of load meets all commands alike.
        rounds = [
            {name: time_ms(command, environment) for name, command in commands.items()}
            for _ in range(ROUNDS)
        ]
    for label in commands:
        target = "" if label.endswith(("pass", "reports")) else "<= 30 ms"
        print_figure(label, [row[label] for row in rounds], "ms", target=target)


if __name__ == "__main__":
    main()

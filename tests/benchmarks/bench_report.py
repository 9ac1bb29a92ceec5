"""What does one `nni.report_intermediate_result` cost the trial that calls it?

Target: 0.3 ms. A trial in a process of its own reports to an agent that answers as soon as it
holds the metric; the agent here is the one of the tests, in a process of its own, too.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from tests.benchmarks.measure import print_figure, print_header
from tests.support.trial_agent import TrialAgent

REPORTS = 5000
TRIAL = f"""
import json, time
import nni
nni.get_next_parameter()
nni.report_intermediate_result(0)
times = []
cpu = time.process_time()
for value in range({REPORTS}):
    start = time.perf_counter()
    nni.report_intermediate_result({{"default": value * 0.1, "loss": 0.25}})
    times.append(time.perf_counter() - start)
print(json.dumps([times, time.process_time() - cpu]))
"""


def serve(folder: str, parent: Connection) -> None:
    with TrialAgent(Path(folder), {}) as agent:
        parent.send(agent.environment())
        parent.recv()


def main() -> None:
    print_header(str(__doc__))
    ours, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        server = multiprocessing.get_context("spawn").Process(target=serve, args=[folder, theirs])
        server.start()
        environment = {**os.environ, **ours.recv()}
        ended = subprocess.run(
            [sys.executable, "-c", TRIAL], env=environment, check=True, capture_output=True
        )
        ours.send("done")
        server.join()
    times, cpu_s = json.loads(ended.stdout)
    print_figure("one report", [time_s * 1000 for time_s in times], "ms", target="<= 0.3 ms")
    print_figure("CPU of one report in the trial", [cpu_s / REPORTS * 1000], "ms")


if __name__ == "__main__":
    main()

"""How do lists of all trials grow with the number of trials: 1,000, 10,000 and 50,000?

The experiment is over and opened for reading in a real local shape. While a list is read, another
client requests the version again and again: its slowest response shows how long others wait, and
the metric of the loop's watchdog how often the manager was held.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx

from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support.finished_experiment import write_finished
from tests.support.local_shape import LocalShape, running_shape

SIZES = (1_000, 10_000, 50_000)
LISTS = ("trial-jobs", "metric-data-latest", "export-data", "trial-jobs?order=metric")
WAIT_LIMIT_MS = 50.0


class Watch:
    """Client that requests the version until it is stopped."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = url
        self._headers = headers
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.waits_ms: list[float] = []

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        with httpx.Client(headers=self._headers, trust_env=False, timeout=60) as client:
            while not self._stopped.is_set():
                begin = time.perf_counter()
                client.get(self._url)
                self.waits_ms.append((time.perf_counter() - begin) * 1e3)


def holds(base: str, headers: dict[str, str]) -> float:
    """Return how often the manager's loop was held for more than 50 ms."""
    text = httpx.get(f"{base}/metrics", headers=headers, trust_env=False).text
    found = re.search(r"^nni_loop_holds_total (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def measure(shape: LocalShape, name: str, trials: int) -> None:
    """Print the figures of one experiment."""
    base = str(shape.endpoint()["http"])
    # Other users of the machine make reading private.
    headers = {"Authorization": f"Bearer {shape.endpoint()['token']}"}
    root = f"{base}/api/v1/nni/experiments/{name}"
    with httpx.Client(headers=headers, trust_env=False, timeout=300) as client:
        for path in LISTS:
            held = holds(base, headers)
            with Watch(f"{base}/api/v1/nni/version", headers) as watch:
                begin = time.perf_counter()
                answer = client.get(f"{root}/{path}")
                took_s = time.perf_counter() - begin
            assert answer.status_code == 200, answer.text
            print_figure(f"/{path}, {trials:,} trials", [took_s], "s")
            print_figure(
                "  slowest response to others",
                [max(watch.waits_ms)],
                "ms",
                target=f"<= {WAIT_LIMIT_MS:g} ms",
            )
            print_figure("  loop held > 50 ms", [holds(base, headers) - held], "times", target="0")


def main() -> None:
    """Run the benchmark."""
    print_header(__doc__ or "")
    for trials in SIZES:
        name = f"lists{trials}"
        with private_home() as home, running_shape(home) as shape:
            folder = write_finished(home, name, trials)
            port = str(shape.free_port())
            shape.nnictl("view", name, "--experiment_dir", folder, "--port", port)
            measure(shape, name, trials)


if __name__ == "__main__":
    main()

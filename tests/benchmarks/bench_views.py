"""How soon does an experiment with 10,000 trials show itself: first page, `show`, export of all?

The experiment is over and opened for reading (`nnictl view --experiment_dir`) in a real local
shape. Ten parameters, three intermediate results and one result for each trial. Times are what a
client sees: over HTTP and gRPC on an open connection, and of the whole `nnictl` process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import grpc
import httpx

from nni_proto.experiment.v1 import experiment_service_pb2, experiment_service_pb2_grpc
from nni_proto.trial.v1 import trial_service_pb2, trial_service_pb2_grpc
from nni_wire.limits import grpc_channel_options
from nni_wire.metadata import bearer
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support.finished_experiment import write_finished
from tests.support.local_shape import LocalShape, running_shape

TRIALS = 10_000
EXPERIMENT = "finished"
REPEATS = 9


def timed_ms(work: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Return the duration of each call, after one warm-up call."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def measure_rest(shape: LocalShape) -> None:
    """Print the figures of REST."""
    base = f"{shape.endpoint()['http']}/api/v1/nni/experiments/{EXPERIMENT}"
    # Other users of the machine make reading private.
    headers = {"Authorization": f"Bearer {shape.endpoint()['token']}"}
    with httpx.Client(base_url=base, headers=headers, trust_env=False, timeout=60) as client:

        def get(path: str, **query: str | int | bool) -> int:
            answer = client.get(path, params=query)
            assert answer.status_code == 200, answer.text
            return len(answer.content)

        target = "<= 100 ms"
        first = timed_ms(lambda: get("/trial-jobs", limit=100))
        print_figure("first trial page (100), REST", first, "ms", target=target)
        best = timed_ms(lambda: get("/trial-jobs", limit=100, order="metric"))
        print_figure("best 100 trials, REST", best, "ms", target=target)
        largest = timed_ms(lambda: get("/trial-jobs", limit=1000))
        print_figure("page of 1,000 trials, REST", largest, "ms")
        profile = timed_ms(lambda: get("/experiment"))
        print_figure("profile, REST", profile, "ms", target=target)
        print_figure("all trials, REST", timed_ms(lambda: get("/trial-jobs"), 3), "ms")
        export = timed_ms(lambda: get("/export-data"), 3)
        print_figure("export of all, REST", export, "ms", target="<= 3000 ms")
        with_all = timed_ms(lambda: get("/export-data", intermediate=True), 3)
        print_figure("export with intermediates, REST", with_all, "ms", target="<= 3000 ms")


def measure_grpc(shape: LocalShape) -> None:
    """Print the figures of gRPC."""
    endpoint = shape.endpoint()
    metadata = bearer(endpoint["token"])
    with grpc.insecure_channel(endpoint["grpc"], options=grpc_channel_options()) as channel:
        trials = trial_service_pb2_grpc.TrialServiceStub(channel)
        experiments = experiment_service_pb2_grpc.ExperimentServiceStub(channel)
        request = trial_service_pb2.ListTrialsRequest(experiment_id=EXPERIMENT)
        first = timed_ms(lambda: trials.ListTrials(request, metadata=metadata, timeout=60))
        print_figure("first trial page (100), gRPC", first, "ms", target="<= 100 ms")

        def export() -> None:
            token, count = "", 0
            while True:
                page = experiments.ExportData(
                    experiment_service_pb2.ExportDataRequest(
                        experiment_id=EXPERIMENT, page_token=token
                    ),
                    metadata=metadata,
                    timeout=60,
                )
                token, count = page.next_page_token, count + len(page.trials)
                if not token:
                    break
            assert count == TRIALS

        print_figure("export of all, gRPC", timed_ms(export, 3), "ms", target="<= 3000 ms")


def measure_nnictl(shape: LocalShape) -> None:
    """Print the figures of whole commands."""
    show = timed_ms(lambda: shape.nnictl("experiment", "show", EXPERIMENT))
    print_figure("nnictl experiment show, whole command", show, "ms", target="<= 100 ms")
    file = shape.folder / "all.json"

    def export() -> None:
        shape.nnictl("experiment", "export", EXPERIMENT, "-f", str(file), "--type", "json")

    whole = timed_ms(export, 3)
    print_figure("nnictl experiment export, whole command", whole, "ms", target="<= 3000 ms")


def main() -> int:
    """Print the figures."""
    print_header(__doc__ or "", seed=0, packages=["grpcio", "starlette", "uvicorn"])
    with private_home() as home, running_shape(home) as shape:
        begin = time.perf_counter()
        folder = write_finished(home, EXPERIMENT, TRIALS)
        print(f"   made {TRIALS} trials in {time.perf_counter() - begin:.1f} s")
        begin = time.perf_counter()
        port = str(shape.free_port())
        shape.nnictl("view", EXPERIMENT, "--experiment_dir", folder, "--port", port)
        print(f"   opened in {time.perf_counter() - begin:.1f} s")
        measure_rest(shape)
        measure_grpc(shape)
        measure_nnictl(shape)
    return 0


if __name__ == "__main__":
    sys.exit(main())

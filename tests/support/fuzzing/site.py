"""Installation with finished, live and stopped experiments, for invalid requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.experiment.v1 import experiment_service_pb2_grpc as pb_grpc
from nni_wire.metadata import bearer
from tests.support.experiments import INSTANT, PATIENT, write_experiment
from tests.support.local_shape import LocalShape, running_shape
from tests.support.ports import free_port


@dataclass
class Site:
    """Installation and its experiments."""

    shape: LocalShape
    folder: Path
    done: str
    """Experiment that is DONE because its tuner has no more configurations."""
    live: str
    """Experiment with two trials that never end."""
    stopped: str
    trials: tuple[str, ...]
    """Some trials of the experiments."""
    _read: dict[Path, int]

    @property
    def ids(self) -> list[str]:
        """Ids of all experiments."""
        return [self.done, self.live, self.stopped]

    def endpoint(self) -> dict[str, Any]:
        """Return addresses and token of the installation."""
        return self.shape.endpoint()

    def algorithm_addresses(self) -> list[str]:
        """Return `host:port` of dispatcher, compressor and NAS service; calls start the latter."""
        ports = self.shape.ports()
        return [f"127.0.0.1:{ports[name]}" for name in ("dispatcher", "compressor", "nas")]

    def remove(self, experiment_id: str) -> None:
        """Stop and delete an experiment."""
        endpoint = self.endpoint()
        options: Any = {"metadata": bearer(endpoint["token"]), "timeout": 30}
        with grpc.insecure_channel(endpoint["grpc"]) as channel:
            stub = pb_grpc.ExperimentServiceStub(channel)
            stub.StopExperiment(pb.StopExperimentRequest(experiment_id=experiment_id), **options)
            stub.DeleteExperiment(
                pb.DeleteExperimentRequest(experiment_id=experiment_id), **options
            )

    def new_defects(self) -> list[str]:
        """Return the lines logged since the last call that report a defect."""
        found = []
        for path in sorted((self.shape.home / "log").glob("*.log")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read().decode("utf-8", "replace")
                self._read[path] = file.tell()
            found += [f"{path.name}: {line}" for line in text.splitlines() if _is_defect(line)]
        return found


def _is_defect(line: str) -> bool:
    """Return whether a line of a log is a traceback or has the level error or critical."""
    if "Traceback (most recent call last)" in line:
        return True
    try:
        fields = json.loads(line)
    except ValueError:
        return False
    return isinstance(fields, dict) and fields.get("level") in {"error", "critical"}


@contextmanager
def fuzzed_site(folder: Path) -> Iterator[Site]:
    """Start an installation and its experiments; stop them at the end of the block."""
    with running_shape(folder, NNI_STOP_ON_TERM="0") as shape:
        grid = {"tuner": {"name": "GridSearch"}, "searchSpace": {"x": _CHOICE}}
        done = shape.create(write_experiment(folder / "done", INSTANT, **grid))
        stopped = shape.create(write_experiment(folder / "stopped", INSTANT, maxTrialNumber=2))
        live = shape.create(
            write_experiment(folder / "live", PATIENT, maxTrialNumber=1000, trialConcurrency=2)
        )
        shape.wait_for(done, "DONE")
        shape.wait_for(stopped, "DONE")
        shape.nnictl("stop", stopped)
        shape.wait_for(live, "RUNNING")
        trials = tuple(row["trialJobId"] for row in [*shape.trials(done), *shape.trials(live)])
        site = Site(shape, folder, done, live, stopped, trials, {})
        site.new_defects()
        yield site
        for experiment in (done, live):
            shape.nnictl("stop", experiment, check=False)


_CHOICE: Final = {"_type": "choice", "_value": [0.1, 0.2, 0.3]}

__all__ = ["Site", "free_port", "fuzzed_site"]

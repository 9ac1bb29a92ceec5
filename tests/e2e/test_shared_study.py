"""Studies that several processes share, on the real services of this machine."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nni.errors import NoMoreTrialError
from nni.experiment import SharedStudy
from nni.experiment.client import ManagerClient
from nni.experiment.local_shape import ensure_local_shape
from nni.experiment.study_arguments import StudyArguments, study_config
from nni_proto.trial.v1 import cause_pb2, trial_pb2, trial_service_pb2
from tests.support import wait
from tests.support.local_shape import LocalShape
from tests.support.nnictl import shared_shape
from tests.support.study_suite import CASES, SPACE, Make

__all__ = ["shared_shape"]  # a fixture

EXAMPLE = Path(__file__).parents[2] / "examples" / "shared-study" / "search.py"
LEASE_S = 5
PATIENCE_S = 120.0
AFTER_KILL = 3
"""Trials of each process that goes on."""
WORKER = """\
import sys

from nni.experiment import SharedStudy
from nni.experiment.errors import LeaseLapsedError

study = SharedStudy("killed", tuner="TPE")
for number in range(1 + int(sys.argv[1])):
    trial = study.ask()
    print("asked", trial.id, flush=True)
    if number == 0:
        sys.stdin.readline()
    try:
        study.tell(trial, (trial.parameters["x"] - 0.3) ** 2)
    except LeaseLapsedError:  # this machine was too busy to renew it
        print("lapsed", trial.id, flush=True)
    else:
        print("told", trial.id, flush=True)
sys.stdin.readline()
print("best", study.best_value, flush=True)
"""


@pytest.fixture(autouse=True)
def services(shared_shape: LocalShape, monkeypatch: pytest.MonkeyPatch) -> LocalShape:
    for name in ("HOME", "NNI_HOME", "PATH"):
        monkeypatch.setenv(name, shared_shape.environment[name])
    return shared_shape


@pytest.fixture
def make(services: LocalShape) -> Iterator[Make]:
    numbers = itertools.count()
    with ExitStack() as stack:

        def one(space: Any, **arguments: Any) -> SharedStudy:
            study = SharedStudy(f"case{next(numbers)}", space, **arguments)
            stack.callback(study.close)
            stack.callback(study.stop)
            return study

        yield one


@pytest.mark.timeout(240)
def test_a_shared_study_behaves_like_one_in_the_process(make: Make) -> None:
    for check in CASES:
        check(make)


class Worker:
    """Process that shares the study, and what it has printed."""

    def __init__(self, script: Path, shape: LocalShape) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(AFTER_KILL)],
            env=shape.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.printed: list[tuple[str, str]] = []

    def read(self) -> tuple[str, str]:
        """Return the next line that it prints: what was done, and the trial or value."""
        assert self.process.stdout is not None
        word, about = self.process.stdout.readline().split()
        self.printed.append((word, about))
        return word, about

    def go_on(self) -> None:
        """Let it go on from where it waits."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def ids(self, word: str) -> list[int]:
        return [int(about) for done, about in self.printed if done == word]

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.timeout(240)
def test_killed_process_and_manager_lose_no_trial_and_a_stopped_study_goes_on(
    services: LocalShape, tmp_path: Path
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    config = study_config("killed", StudyArguments(SPACE, "TPE", seed=1))
    config.callers.lease.seconds = LEASE_S
    with ManagerClient(ensure_local_shape()) as client:
        client.create(
            config,
            port=0,
            url_prefix="",
            environment=services.environment,
            interpreter=sys.executable,
            experiment_id="killed",
        )

        def trials() -> dict[int, trial_pb2.Trial]:
            request = trial_service_pb2.ListTrialsRequest(experiment_id="killed")
            return {int(one.sequence_id): one for one in client.trials(request)}

        with ExitStack() as stack:
            workers = [Worker(script, services) for _ in range(3)]
            for worker in workers:
                stack.callback(worker.end)
            for worker in workers:
                assert worker.read()[0] == "asked"
            victim, *others = workers
            (held,) = victim.ids("asked")

            victim.process.kill()
            services.kill("manager")
            for worker in others:
                worker.go_on()
            for worker in others:
                while len(worker.printed) < 2 * (1 + AFTER_KILL):
                    worker.read()
            wait.until(
                lambda: trials()[held].state == trial_pb2.TRIAL_STATE_FAILED,
                PATIENCE_S,
                "the lapse of the lease of the killed process",
            )
            for worker in others:
                worker.go_on()
            best = [worker.read()[1] for worker in others]

        found = trials()
        asked = sorted(number for worker in workers for number in worker.ids("asked"))
        told = {number for worker in workers for number in worker.ids("told")}
        lapsed = {number for worker in workers for number in worker.ids("lapsed")}
        assert asked == sorted(found) == list(range(3 + 2 * AFTER_KILL))
        succeeded = trial_pb2.TRIAL_STATE_SUCCEEDED
        assert {number for number, one in found.items() if one.state == succeeded} == told
        assert lapsed | {held} == set(found) - told
        for number in lapsed | {held}:
            assert found[number].end.loss.cause == cause_pb2.LOSS_CAUSE_LEASE_LAPSED
        with SharedStudy("killed") as study:
            assert {*best, str(study.best_value)} == {best[0]}
            study.stop()
            with pytest.raises(NoMoreTrialError):
                study.ask()
            study.resume()
            assert study.ask().id == len(found)
            assert str(study.best_value) == best[0]
            study.stop()


@pytest.mark.timeout(240)
def test_processes_of_the_example_share_one_study(services: LocalShape) -> None:
    command = [sys.executable, str(EXAMPLE), "--trials", "4"]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    command, env=services.environment, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(2)
        ]
        printed = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]

    with SharedStudy("sharedquadratic") as study:
        told = [int(re.findall(r"this process: (\d) trials", text)[0]) for text in printed]
        # A process that this machine held up for a minute has lost a trial.
        assert sum(told) == len(study.results) <= 8
        bests = [float(re.findall(r"best: trial \d+, (\S+),", text)[0]) for text in printed]
        assert f"{min(bests):.4f}" == f"{study.best_value:.4f}"
        study.stop()

"""Output of trials whose files the manager cannot see, while they run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.support.experiments import write_experiment
from tests.support.local_shape import LocalShape, running_shape
from tests.support.nnictl import Nnictl
from tests.support.servers import require_binary
from tests.support.wait import until

TRIAL = """\
import signal
import sys

import nni

nni.get_next_parameter()
print("grüße", flush=True)
print("oh", file=sys.stderr, flush=True)
signal.pause()
"""


@pytest.fixture
def shape(tmp_path: Path) -> Iterator[LocalShape]:
    """Services that behave as if the agent were on another machine."""
    require_binary("nats-server")
    variables = {"NNI_BYTES_TRAVEL": "yes", "NNI_RUNNER_LIVE_OUTPUT": "yes"}
    with running_shape(tmp_path, **variables) as made:
        yield made


def test_output_travels_while_a_trial_runs(shape: LocalShape, tmp_path: Path) -> None:
    nnictl = Nnictl(shape)
    experiment = nnictl.create(write_experiment(tmp_path / "code", TRIAL, maxTrialNumber=1))
    trial = until(lambda: nnictl.trials(experiment), 60, "a trial")[0]["trialJobId"]
    following = nnictl.start("log", "trial", experiment, "--trial_id", trial, "--follow")
    base = f"{shape.endpoint()['http']}/api/v1/nni/experiments/{experiment}"
    with build_opener(ProxyHandler({})).open(f"{base}/trials/{trial}/log?stream=stderr") as events:
        assert following.stdout is not None
        with following.stdout:
            assert following.stdout.readline() == "grüße\n"
            data = next(line for line in map(bytes.decode, events) if line.startswith("data: "))
            assert not (shape.root / experiment / "trials" / trial / "stdout").exists()

            nnictl("trial", "kill", experiment, "--trial_id", trial)

            assert following.stdout.read() == ""
        assert following.wait(60) == 0
        assert json.loads(data.removeprefix("data: ")) == {
            "attempt": 1,
            "offset": 0,
            "text": "oh\n",
        }
        assert "event: end\n" in [line.decode() for line in events]

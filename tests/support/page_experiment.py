"""Experiments for tests of the page: results, failures, intermediate results, waiting trials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import pytest

from tests.support.browser import Browser, Page, running_browser
from tests.support.experiments import write_experiment
from tests.support.local_shape import LocalShape, running_shape
from tests.support.servers import require_binary

TRIALS: Final = 12
WAITING_LR: Final = 0.5
"""Learning rate of trials that run until they are killed; the tuner never samples it."""
SPACE: Final = {
    "lr": {"_type": "loguniform", "_value": [0.001, 1]},
    "layers": {"_type": "randint", "_value": [1, 5]},
    "opt": {"_type": "choice", "_value": ["adam", "sgd", "broken"]},
    "head": {
        "_type": "choice",
        "_value": [
            {"_name": "none"},
            {"_name": "mlp", "units": {"_type": "choice", "_value": [8]}},
        ],
    },
}
SCRIPT: Final = f"""\
import signal
import sys

import nni

parameters = nni.get_next_parameter()
print("optimiser:", parameters["opt"], flush=True)
if parameters["opt"] == "broken":
    sys.exit("there is no optimiser of this name")
loss = abs(parameters["lr"] - 0.1)
for step in range(1, 6):
    accuracy = 1 - loss - 0.1 * parameters["layers"] / step
    nni.report_intermediate_result({{"default": accuracy, "loss": loss}})
if parameters["lr"] == {WAITING_LR}:
    print("waiting", flush=True)
    signal.pause()
nni.report_final_result({{"default": accuracy, "loss": loss}})
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """An experiment of a running installation, with access by REST and browser."""

    shape: LocalShape
    experiment: str

    def address(self, view: str = "oview", *, token: bool = True, **query: str) -> str:
        """Return the address of a view on the base listener."""
        endpoint = self.shape.endpoint()
        secret = {"token": endpoint["token"]} if token else {}
        return f"{endpoint['http']}/{view}?{urlencode({'id': self.experiment, **secret, **query})}"

    def rest(self, path: str) -> Any:
        """Return the response of a route of the experiment."""
        base = f"{self.shape.endpoint()['http']}/api/v1/nni/experiments/{self.experiment}"
        answer = httpx.get(f"{base}/{path}", timeout=20, trust_env=False)
        answer.raise_for_status()
        return answer.json()

    def installation(self, path: str) -> Any:
        """Return the response of a route of the installation."""
        address = f"{self.shape.endpoint()['http']}/api/v1/nni/{path}"
        answer = httpx.get(address, timeout=20, trust_env=False)
        answer.raise_for_status()
        return answer.json()

    def trials(self) -> list[dict[str, Any]]:
        """Return the records of all trials, with `parameters`, `source` and `value` added."""
        found = self.rest("trial-jobs")
        for trial in found:
            given = json.loads(trial["hyperParameters"][0])
            trial |= {"parameters": given["parameters"], "source": given["parameter_source"]}
            finals = trial.get("finalMetricData")
            trial["value"] = finals[0]["data"]["default"] if finals else None
        return list(found)

    def judged(self) -> list[dict[str, Any]]:
        """Return the records of the trials that have a result."""
        return [one for one in self.trials() if one["value"] is not None]

    def in_state(self, state: str, *, source: str = "algorithm") -> list[dict[str, Any]]:
        """Return the records of the trials in a state whose parameters come from `source`."""
        return [one for one in self.trials() if one["status"] == state and one["source"] == source]

    def visit(self, browser: Browser, view: str = "oview", **options: Any) -> Page:
        """Open a view in a new tab with the token."""
        page = browser.new_page(**options)
        page.open(self.address(view))
        return page


def create_waiting(shape: LocalShape, folder: Path, **changes: object) -> Shown:
    """Start an experiment with waiting trials and a budget for more trials."""
    config = write_experiment(
        folder,
        SCRIPT,
        searchSpace={
            "lr": {"_type": "choice", "_value": [0.2, WAITING_LR]},
            "layers": {"_type": "randint", "_value": [1, 3]},
            "opt": {"_type": "choice", "_value": ["adam"]},
        },
        maxTrialNumber=9,
        trialConcurrency=4,
        tuner={"name": "GridSearch"},
        **changes,
    )
    return Shown(shape, shape.create(config))


def create_shown(shape: LocalShape, folder: Path, **changes: object) -> Shown:
    """Run the experiment to its end."""
    config = write_experiment(
        folder,
        SCRIPT,
        experimentName="page",
        searchSpace=SPACE,
        maxTrialNumber=TRIALS,
        maxExperimentDuration="1h",
        tuner={"name": "Random", "classArgs": {"optimize_mode": "maximize", "seed": 3}},
        **changes,
    )
    shown = Shown(shape, shape.create(config))
    shape.wait_for(shown.experiment, "DONE")
    return shown


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for the tests of a module."""
    with running_browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A finished experiment; tests that change it preserve the data of other tests."""
    require_binary("nats-server")
    folder = tmp_path_factory.mktemp("page")
    with running_shape(folder) as shape:
        yield create_shown(shape, folder / "code")

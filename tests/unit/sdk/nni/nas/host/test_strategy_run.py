"""A strategy that runs over pipes, against a service that evaluates its candidates at once."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from nni.hpo.host.command_pipe import CommandPipe
from nni.nas.execution.candidate import model_from, parameters_of
from nni.nas.host.document import dump_exploration
from nni.nas.host.strategy_run import FAILED, run_strategy
from nni.nas.space import SimplifiedModelSpace
from nni.nas.strategy import GridSearch, RandomOneShot
from nni.nas.strategy.base import Strategy
from nni.nas.strategy.oneshot.trial_search import SupernetSearch
from tests.support.architecture_search import Submitting
from tests.support.explored_space import widths
from tests.support.supernet_trials import branches


@pytest.fixture(autouse=True)
def level_of_the_library() -> Iterator[None]:
    """Restore the level of the log, which a process of a strategy sets for itself."""
    logger = logging.getLogger("nni")
    level = logger.level
    yield
    logger.setLevel(level)


class Service:
    """NAS service whose trials end as soon as they are scheduled."""

    def __init__(
        self,
        strategy: Strategy,
        *,
        concurrency: int = 1,
        space: SimplifiedModelSpace | None = None,
    ) -> None:
        self.lines: list[dict[str, Any]] = []
        self.submitted: list[int] = []
        self._trials = 0
        self._first = {
            "op": "initialize",
            "experiment_id": "exp",
            "document": dump_exploration(space or widths(), strategy),
            "code_directory": "",
            "concurrency": concurrency,
            "seed": 1,
            "log_level": "info",
        }

    def results(self, key: str, width: int) -> list[dict[str, Any]]:
        """Return the lines about the trial of a candidate."""
        self._trials += 1
        return [
            {"op": "scheduled", "key": key, "trial_id": f"t{self._trials}"},
            {"op": "metric", "key": key, "value": float(width), "is_final": True},
            {"op": "ended", "key": key, "succeeded": True},
        ]

    def run(self, *past: dict[str, Any], limit: int = 100) -> int:
        """Run the strategy to its end; return its exit code.

        Args:
            past: lines about the log before its start.
            limit: number of candidates after which the experiment takes no more.
        """
        child_in, commands = os.pipe()
        outputs, child_out = os.pipe()
        codes: list[int] = []

        def strategy() -> None:
            codes.append(run_strategy(CommandPipe(child_in, child_out)))
            os.close(child_out)

        thread = threading.Thread(target=strategy, name="strategy")
        thread.start()
        with os.fdopen(commands, "w") as target, os.fdopen(outputs) as source:

            def send(*lines: dict[str, Any]) -> None:
                target.writelines(json.dumps(line) + "\n" for line in lines)
                target.flush()

            send(self._first, *past, {"op": "live"})
            for text in source:
                line = json.loads(text)
                self.lines.append(line)
                if "candidate" in line:
                    width = line["parameters"]["sample"].get("width", 0)
                    self.submitted.append(width)
                    send(*self.results(line["candidate"], width))
                    if len(self.submitted) == limit:
                        closed = {"op": "closed", "reason": "DONE", "is_final": True}
                        send(closed)
        thread.join(60)
        os.close(child_in)
        return codes[0]


def added(width: int) -> dict[str, Any]:
    model = widths().freeze({"width": width})
    return {"op": "added", "key": f"old-{width}", "parameters": parameters_of(model)}


def test_strategy_submits_candidates_until_it_has_no_more() -> None:
    service = Service(GridSearch(seed=0))

    code = service.run()

    assert code == 0
    assert sorted(service.submitted) == [1, 2, 3, 4, 5, 6]
    assert service.lines[0] == {"ready": True}
    assert service.lines[-1] == {"exhausted": True}


def test_limit_of_the_experiment_does_not_exhaust_the_strategy() -> None:
    service = Service(GridSearch(seed=0))

    code = service.run(limit=3)

    assert code == 0
    assert {"exhausted": True} not in service.lines


def test_one_shot_strategy_is_one_candidate_that_its_trial_runs() -> None:
    service = Service(RandomOneShot(), space=branches())

    code = service.run()

    assert code == 0
    (parameters,) = [one["parameters"] for one in service.lines if "candidate" in one]
    search = model_from(parameters)
    assert isinstance(search, SupernetSearch)
    assert isinstance(search.strategy, RandomOneShot)
    assert service.lines[-1] == {"exhausted": True}


def test_what_the_log_has_is_not_evaluated_again() -> None:
    service = Service(GridSearch(seed=0))
    past = [
        line for width in (2, 5) for line in (added(width), *service.results(f"old-{width}", width))
    ]

    service.run(*past)

    assert sorted(service.submitted) == [1, 3, 4, 6]
    assert service.lines[-1] == {"exhausted": True}


def test_strategy_that_raises_is_reported_with_its_traceback() -> None:
    service = Service(Submitting(7))  # the space of this one has no label `a`

    code = service.run()

    assert code == FAILED
    assert "traceback" in service.lines[-1]
    assert "Error" in service.lines[-1]["failed"]


def test_document_that_cannot_be_opened_is_reported() -> None:
    service = Service(GridSearch(seed=0))
    service._first["document"] = "{}"

    code = service.run()

    assert code == FAILED
    assert "install the same version" in service.lines[-1]["failed"]

"""Kill any process at any moment: every trial is there in the end, counted once."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
from functools import partial
from pathlib import Path

import psutil
import pytest

from nni.errors import NniError
from nni.experiment import Experiment
from tests.support import processes, wait
from tests.support.local_shape import LocalShape

TRIALS = 60
SLOTS = 4
KILLS = 10
VICTIMS = ["svc_manager", "nni.hpo.host", "svc_trial_runner", "svc_dispatcher", "nats-server"]
TRIAL = """\
import os, time
import nni
p = nni.get_next_parameter()
nni.report_intermediate_result(p["x"])
time.sleep(0.15)
nni.report_final_result(p["x"] ** 2)
with open(os.environ["CHAOS_WITNESS"], "a") as file:
    file.write(nni.get_trial_id() + "\\n")
"""


def kill_one(supervisor: int, word: str) -> bool:
    for victim in processes.named(supervisor, word):
        with contextlib.suppress(psutil.NoSuchProcess):
            os.kill(victim.pid, signal.SIGKILL)
            return True
    return False


def enough(witness: Path, count: int) -> bool:
    return len(witness.read_text("ascii").split()) >= count


def finished(experiment: Experiment) -> bool:
    with contextlib.suppress(NniError):
        return experiment.get_status() in {"DONE", "ERROR", "STOPPED"}
    return False


@pytest.mark.timeout(240)
def test_sixty_trials_survive_ten_kills_and_are_counted_once(
    local_shape: LocalShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "witness"
    witness.touch()
    monkeypatch.setenv("CHAOS_WITNESS", str(witness))
    (tmp_path / "trial.py").write_text(TRIAL, "utf-8")
    experiment = Experiment("local")
    experiment.config.search_space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
    experiment.config.trial_command = "python3 trial.py"
    experiment.config.trial_code_directory = tmp_path
    experiment.config.trial_concurrency = SLOTS
    experiment.config.max_trial_number = TRIALS
    experiment.config.max_trial_retries = KILLS
    experiment.config.tuner.name = "TPE"
    experiment.config.tuner.class_args["optimize_mode"] = "minimize"
    experiment.config.experiment_working_directory = local_shape.root
    order = random.Random(20261120)
    victims = list(itertools.islice(itertools.cycle(VICTIMS), KILLS))
    order.shuffle(victims)

    experiment.start(local_shape.free_port())
    supervisor = json.loads((local_shape.home / "endpoint.json").read_text("utf-8"))["pid"]
    for number, word in enumerate(victims):
        due = (number + 1) * TRIALS // (KILLS + 2)
        wait.until(
            partial(enough, witness, due), 90, f"{due} trials ended before kill {number} ({word})"
        )
        wait.until(partial(kill_one, supervisor, word), 30, f"a {word} to kill")
    wait.until(lambda: finished(experiment), 120, "the experiment's end")

    status = experiment.get_status()
    jobs = experiment.list_trial_jobs()
    results = experiment.export_data()
    experiment.stop()
    assert status == "DONE"
    assert sorted(job.sequenceId for job in jobs) == list(range(TRIALS))
    assert len({job.trialJobId for job in jobs}) == TRIALS
    assert {job.status for job in jobs} == {"SUCCEEDED"}
    assert len(results) == TRIALS
    assert all(result.value == result.parameter["x"] ** 2 for result in results)
    assert {job.trialJobId for job in jobs} <= set(witness.read_text("ascii").split())

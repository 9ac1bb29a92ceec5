"""Every exported value belongs to the parameters beside it, whatever ran at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nni.experiment import Experiment
from tests.support.local_shape import LocalShape

TRIALS = 200
TRIAL = """\
import nni
p = nni.get_next_parameter()
nni.report_intermediate_result(p["x"])
nni.report_final_result(p["x"] * 3.0 + p["layer"]["units"])
"""
SPACE = {
    "x": {"_type": "uniform", "_value": [-5, 5]},
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "narrow", "units": {"_type": "randint", "_value": [1, 10]}},
            {"_name": "wide", "units": {"_type": "choice", "_value": [64, 128]}},
        ],
    },
}


def expected(parameters: dict[str, Any]) -> float:
    return float(parameters["x"] * 3.0 + parameters["layer"]["units"])


@pytest.mark.claim("hpo", 5)
@pytest.mark.timeout(180)
def test_two_hundred_values_at_concurrency_eight_follow_from_their_own_parameters(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    (tmp_path / "trial.py").write_text(TRIAL, "utf-8")
    experiment = Experiment("local")
    experiment.config.search_space = SPACE
    experiment.config.trial_command = "python3 trial.py"
    experiment.config.trial_code_directory = tmp_path
    experiment.config.trial_concurrency = 8
    experiment.config.max_trial_number = TRIALS
    experiment.config.tuner.name = "TPE"
    experiment.config.tuner.class_args["optimize_mode"] = "minimize"
    experiment.config.experiment_working_directory = local_shape.root

    experiment.start(local_shape.free_port())
    try:
        assert experiment.wait_completion()
        results = experiment.export_data()
        jobs = {job.trialJobId: job for job in experiment.list_trial_jobs()}
        metrics = experiment.get_job_metrics()
    finally:
        experiment.stop()

    assert len(results) == TRIALS
    assert [r.trialJobId for r in results if r.value != expected(r.parameter)] == []
    assert sorted(job.sequenceId for job in jobs.values()) == list(range(TRIALS))
    for result in results:
        assert jobs[result.trialJobId].hyperParameters[0].parameters == result.parameter
        intermediate, final = metrics[result.trialJobId]
        assert (intermediate.type, final.type) == ("PERIODICAL", "FINAL")
        assert intermediate.data == result.parameter["x"]
        assert final.data == result.value

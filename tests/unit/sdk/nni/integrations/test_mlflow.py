from pathlib import Path
from typing import Any

import pytest

from tests.support.tracked_trials import run_trial

mlflow = pytest.importorskip("mlflow")

from nni.hpo import Uniform, optimize  # noqa: E402
from nni.integrations import MlflowCallback, report_to_mlflow  # noqa: E402 - needs the library

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its SQLAlchemy


def test_a_run_has_all_of_the_trial(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/runs.db"
    client = mlflow.tracking.MlflowClient(tracking_uri=uri)
    client.create_experiment("digits", artifact_location=f"file://{tmp_path}/artifacts")
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs/model.txt").write_text("weights")

    tracked = run_trial(
        lambda: report_to_mlflow("digits", tracking_uri=uri, outputs=tmp_path / "outputs"),
        result={"default": 0.25, "β": 1},
    )

    run = client.get_run(tracked.run)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "STANDALONE"
    assert run.data.tags["nni.experiment_id"] == "STANDALONE"
    assert run.data.params["layer/width"] == "8"
    assert run.data.metrics == {
        "default": 0.5,
        "of/b": 2.0,
        "final/default": 0.25,
        "final/_": 1.0,
    }
    history = client.get_metric_history(tracked.run, "default")
    assert [(one.step, one.value) for one in history] == [(0, 1.5), (1, 0.5)]
    assert [one.path for one in client.list_artifacts(tracked.run)] == ["model.txt"]


def test_a_trial_without_result_is_a_failed_run_of_a_new_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tracked = run_trial(
        lambda: report_to_mlflow("new", tracking_uri="sqlite:///runs.db"), result=None
    )

    client = mlflow.tracking.MlflowClient(tracking_uri="sqlite:///runs.db")
    assert client.get_run(tracked.run).info.status == "FAILED"
    assert client.get_experiment_by_name("new") is not None


def test_the_token_comes_from_the_named_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "s3cret")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "")
    run_trial(
        lambda: report_to_mlflow(
            tracking_uri=f"sqlite:///{tmp_path}/runs.db", token_variable="TEAM_TOKEN"
        )
    )

    assert mlflow.environment_variables.MLFLOW_TRACKING_TOKEN.get() == "s3cret"


def test_each_trial_of_a_search_is_a_run(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/runs.db"
    client = mlflow.tracking.MlflowClient(tracking_uri=uri)
    client.create_experiment("square", artifact_location=f"file://{tmp_path}/artifacts")
    (tmp_path / "model.txt").write_text("weights")

    def objective(parameters: Any) -> Any:
        yield 0.5
        if parameters["x"] < 0:
            raise ValueError("negative")
        return parameters["x"] ** 2

    optimize(
        objective,
        {"x": Uniform(-1, 1)},
        tuner="Random",
        trials=1,
        enqueue=[{"x": 0.5}],
        callbacks=[
            MlflowCallback(
                "square",
                tracking_uri=uri,
                search="first",
                outputs=lambda record: tmp_path / "model.txt",
            )
        ],
    )

    (run,) = client.search_runs([client.get_experiment_by_name("square").experiment_id])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "trial-0"
    assert run.data.tags["nni.search"] == "first"
    assert run.data.params == {"x": "0.5"}
    assert run.data.metrics == {"default": 0.5, "final/default": 0.25}
    assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["model.txt"]

"""Reports of a trial, or of the trials of `optimize`, to MLflow.

Needs the extra `nni[mlflow]`.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import time
from typing import Any

from nni.integrations._extras import missing_extra
from nni.integrations._tracked_search import Outputs, TrackedSearch
from nni.integrations.tracking import (
    RunIds,
    TrackedTrial,
    ids_of_trial,
    is_tracked,
    secret_from,
)

__all__ = ["MlflowCallback", "report_to_mlflow"]

_OTHER_CHARACTERS = re.compile(r"[^\w\-./ ]", re.ASCII)
_TEXT_CHARACTERS = 500
"""Length of a parameter that every server of MLflow takes."""
_BATCH = 100
"""Parameters that MLflow takes at once."""
_MS = 1000


def report_to_mlflow(
    experiment: str = "nni",
    *,
    tracking_uri: str | None = None,
    token_variable: str | None = None,
    outputs: str | Path | None = None,
) -> TrackedTrial:
    """Send this trial's parameters, metrics, result, outputs to MLflow; return a `TrackedTrial`.

    Intermediate results are metrics with a step, under `default` or the keys of the report; the
    result is below `final/`. The run is named after the trial, and has the ids of experiment and
    trial as tags. Without a server, as with `sqlite:///runs.db`, nothing leaves the machine.

    Args:
        experiment: name of the experiment in MLflow, which is created if it is missing.
        tracking_uri: server or database; None: what MLflow's own setting says.
        token_variable: name of the environment variable with the access token of the server; None:
            MLflow's own variables.
        outputs: file or folder that becomes the run's artifact at the end.

    Returns:
        The tracked trial, which may serve as a context manager; its `run` is the id of the run.

    Raises:
        ImportError: MLflow is missing.
        ValueError: the variable has no secret.
        mlflow.exceptions.MlflowException: the server refuses or cannot be reached.

    Examples:
        ```python
        import nni
        from nni.integrations import report_to_mlflow

        report_to_mlflow("digits", tracking_uri="sqlite:///runs.db", outputs="model.pt")
        parameters = nni.get_next_parameter()
        nni.report_final_result(0.97)
        ```
    """
    if not is_tracked():
        return TrackedTrial(None)
    _require("report_to_mlflow")
    token = secret_from(token_variable, "token_variable")
    return TrackedTrial(_MlflowRun(experiment, tracking_uri, token, ids_of_trial()), outputs)


class MlflowCallback(TrackedSearch):
    """Callback of `nni.hpo.optimize` that makes a run of MLflow of each trial that has ended.

    Parameters, metrics and tags are those of `report_to_mlflow`, with the tags `nni.search`,
    `nni.trial_id` and `nni.status`. A run has failed if the objective raised.

    Args:
        experiment: name of the experiment in MLflow, which is created if it is missing.
        tracking_uri: server or database; None: what MLflow's own setting says.
        token_variable: name of the environment variable with the access token of the server; None:
            MLflow's own variables.
        search: name of the search, a tag; None: a new one.
        outputs: function of a `TrialRecord` that returns the file or folder that becomes the run's
            artifact, or None.

    Raises:
        ImportError: MLflow is missing.
        ValueError: the variable has no secret.
        mlflow.exceptions.MlflowException: the server refuses or cannot be reached.

    Examples:
        ```python
        from nni.hpo import Uniform, optimize
        from nni.integrations import MlflowCallback

        track = MlflowCallback("square", tracking_uri="sqlite:///runs.db")
        space = {"x": Uniform(-1, 1)}
        optimize(lambda p: p["x"] ** 2, space, trials=20, callbacks=[track])
        ```
    """

    def __init__(
        self,
        experiment: str = "nni",
        *,
        tracking_uri: str | None = None,
        token_variable: str | None = None,
        search: str | None = None,
        outputs: Outputs | None = None,
    ) -> None:
        _require("MlflowCallback")
        from mlflow.exceptions import MlflowException

        token = secret_from(token_variable, "token_variable")
        _experiment_id(_client(tracking_uri, token), experiment)  # raises what is wrong now

        def open_run(ids: RunIds) -> "_MlflowRun":
            return _MlflowRun(experiment, tracking_uri, token, ids)

        super().__init__(open_run, (MlflowException, OSError), search, outputs)


def _require(name: str) -> None:
    """Raise ImportError if MLflow is missing.

    Raises:
        ImportError: it is; the text names the extra.
    """
    try:
        import mlflow  # noqa: F401 - so that a broken installation is not taken for a missing one
    except ImportError as error:
        raise missing_extra(name, "MLflow", "mlflow") from error


def _client(tracking_uri: str | None, token: str | None) -> Any:  # noqa: ANN401 - of MLflow
    from mlflow.environment_variables import MLFLOW_TRACKING_TOKEN
    from mlflow.tracking import MlflowClient

    if token is not None:
        MLFLOW_TRACKING_TOKEN.set(token)  # MLflow takes a token from here only
    return MlflowClient(tracking_uri=tracking_uri)


class _MlflowRun:
    """Run of MLflow that gets a trial's parameters, metrics, result and outputs (`RunTracker`)."""

    name = "MLflow"

    def __init__(
        self, experiment: str, tracking_uri: str | None, token: str | None, ids: RunIds
    ) -> None:
        from mlflow.exceptions import MlflowException

        self.errors: tuple[type[Exception], ...] = (MlflowException, OSError)
        self._client = _client(tracking_uri, token)
        run = self._client.create_run(
            _experiment_id(self._client, experiment), tags=dict(ids.tags), run_name=ids.name
        )
        self.run: str = run.info.run_id

    def log_parameters(self, values: Mapping[str, Any]) -> None:
        """Send parameters in batches, as texts cut at 500 characters."""
        from mlflow.entities import Param

        texts = [Param(_plain(key), str(value)[:_TEXT_CHARACTERS]) for key, value in values.items()]
        for batch in _batches(texts):
            self._client.log_batch(self.run, params=batch)

    def log_metrics(self, values: Mapping[str, float], step: int) -> None:
        """Send the metrics of a step in batches; odd characters of names become `_`."""
        from mlflow.entities import Metric

        now = int(time() * _MS)
        metrics = [Metric(_plain(key), value, now, step) for key, value in values.items()]
        for batch in _batches(metrics):
            self._client.log_batch(self.run, metrics=batch)

    def log_result(self, values: Mapping[str, float]) -> None:
        """Log the result's numbers as metrics `final/<key>` of step 0."""
        self.log_metrics({f"final/{key}": value for key, value in values.items()}, 0)

    def log_outputs(self, path: Path) -> None:
        """Upload a file, or the files of a folder, as artifacts of the run."""
        if path.is_dir():
            self._client.log_artifacts(self.run, str(path))
        else:
            self._client.log_artifact(self.run, str(path))

    def finish(self, *, succeeded: bool) -> None:
        """Mark the run as FINISHED, or as FAILED if the trial did not succeed."""
        self._client.set_terminated(self.run, "FINISHED" if succeeded else "FAILED")


def _experiment_id(client: Any, name: str) -> str:  # noqa: ANN401 - of MLflow
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:  # another trial has created it meanwhile
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return str(found.experiment_id)


def _plain(name: str) -> str:
    """Return a name with `_` in place of characters that MLflow refuses."""
    return _OTHER_CHARACTERS.sub("_", name)


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    for start in itertools.count(0, _BATCH):
        if start >= len(items):
            return
        yield items[start : start + _BATCH]

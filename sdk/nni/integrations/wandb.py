"""Reports of a trial, or of the trials of `optimize`, to Weights & Biases.

Needs the extra `nni[wandb]`.
"""

from collections.abc import Mapping
from pathlib import Path
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

__all__ = ["WandbCallback", "report_to_wandb"]


def report_to_wandb(
    project: str = "nni",
    *,
    key_variable: str | None = None,
    offline: bool = False,
    outputs: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> TrackedTrial:
    """Send this trial's parameters, metrics, result, outputs to W&B; return a `TrackedTrial`.

    Parameters are the run's configuration, intermediate results its history, under `default` or the
    keys of the report; the result is in its summary, below `final/`. The run is named after the
    trial, and grouped by experiment.

    Args:
        project: name of the project.
        key_variable: name of the environment variable with the API key; None: what W&B finds.
        offline: whether to write the run to the folder `wandb` only, for `wandb sync` later.
        outputs: file or folder that becomes an artifact at the end.
        settings: further ones of `wandb.Settings`, such as `base_url` and `entity`.

    Returns:
        The tracked trial, which may serve as a context manager; its `run` is the `wandb.Run`.

    Raises:
        ImportError: W&B is missing.
        ValueError: the variable has no secret.
        wandb.Error: the server refuses or cannot be reached.

    Examples:
        ```python
        import nni
        from nni.integrations import report_to_wandb

        report_to_wandb("digits", offline=True, outputs="model.pt")
        parameters = nni.get_next_parameter()
        nni.report_final_result(0.97)
        ```
    """
    if not is_tracked():
        return TrackedTrial(None)
    _require("report_to_wandb")
    combined = _settings(key_variable, settings, offline=offline)
    return TrackedTrial(_WandbRun(project, combined, ids_of_trial()), outputs)


class WandbCallback(TrackedSearch):
    """Callback of `nni.hpo.optimize` that makes a run of W&B of each trial that has ended.

    Configuration, history and summary are those of `report_to_wandb`; the runs of a search are a
    group. A run has failed if the objective raised.

    Args:
        project: name of the project.
        key_variable: name of the environment variable with the API key; None: what W&B finds.
        offline: whether to write runs to the folder `wandb` only, for `wandb sync` later.
        search: name of the group; None: a new one.
        outputs: function of a `TrialRecord` that returns the file or folder that becomes an
            artifact, or None.
        settings: further ones of `wandb.Settings`, such as `base_url` and `entity`.

    Raises:
        ImportError: W&B is missing.
        ValueError: the variable has no secret.

    Examples:
        ```python
        from nni.hpo import Uniform, optimize
        from nni.integrations import WandbCallback

        space = {"x": Uniform(-1, 1)}
        track = WandbCallback("square", offline=True)
        optimize(lambda p: p["x"] ** 2, space, trials=2, callbacks=[track])
        ```
    """

    def __init__(
        self,
        project: str = "nni",
        *,
        key_variable: str | None = None,
        offline: bool = False,
        search: str | None = None,
        outputs: Outputs | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        _require("WandbCallback")
        import wandb

        combined = _settings(key_variable, settings, offline=offline)

        def open_run(ids: RunIds) -> "_WandbRun":
            return _WandbRun(project, combined, ids)

        super().__init__(open_run, (wandb.Error, OSError), search, outputs)


def _require(name: str) -> None:
    """Raise ImportError if W&B is missing.

    Raises:
        ImportError: it is; the text names the extra.
    """
    try:
        import wandb  # noqa: F401 - so that a broken installation is not taken for a missing one
    except ImportError as error:
        raise missing_extra(name, "Weights & Biases", "wandb") from error


def _settings(
    key_variable: str | None, settings: Mapping[str, Any] | None, *, offline: bool
) -> dict[str, Any]:
    key = secret_from(key_variable, "key_variable")
    secret = {} if key is None else {"api_key": key}
    mode = {"mode": "offline"} if offline else {}
    return {**(settings or {}), **mode, **secret}


class _WandbRun:
    """Run of W&B that gets a trial's parameters, metrics, result and outputs (`RunTracker`)."""

    name = "Weights & Biases"

    def __init__(self, project: str, settings: Mapping[str, Any], ids: RunIds) -> None:
        import wandb

        self.errors: tuple[type[Exception], ...] = (wandb.Error, OSError)
        self._wandb = wandb
        self.run: Any = wandb.init(
            project=project,
            group=ids.group,
            name=ids.name,
            config={},
            settings=wandb.Settings(**settings),
        )
        self.run.config.update(dict(ids.tags))

    def log_parameters(self, values: Mapping[str, Any]) -> None:
        """Set the parameters as the configuration of the run."""
        self.run.config.update(dict(values))

    def log_metrics(self, values: Mapping[str, float], step: int) -> None:
        """Log numbers of one step."""
        self.run.log(dict(values), step=step)

    def log_result(self, values: Mapping[str, float]) -> None:
        """Write the result's numbers to the summary of the run, as `final/<key>`."""
        self.run.summary.update({f"final/{key}": value for key, value in values.items()})

    def log_outputs(self, path: Path) -> None:
        """Upload a file or folder as one artifact, `outputs-<id of the run>`."""
        artifact = self._wandb.Artifact(f"outputs-{self.run.id}", type="outputs")
        if path.is_dir():
            artifact.add_dir(str(path))
        else:
            artifact.add_file(str(path))
        self.run.log_artifact(artifact)

    def finish(self, *, succeeded: bool) -> None:
        """End the run, with exit code 1 if the trial did not succeed."""
        self.run.finish(exit_code=0 if succeeded else 1)

"""Reports of a trial to Weights & Biases.

Needs the extra `nni[wandb]`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nni
from nni.integrations._extras import missing_extra
from nni.integrations.tracking import TrackedTrial, is_tracked, secret_from, tags

__all__ = ["report_to_wandb"]


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
    try:
        import wandb  # noqa: F401 - so that a broken installation is not taken for a missing one
    except ImportError as error:
        raise missing_extra("report_to_wandb", "Weights & Biases", "wandb") from error
    key = secret_from(key_variable, "key_variable")
    secret = {} if key is None else {"api_key": key}
    mode = {"mode": "offline"} if offline else {}
    run = _WandbRun(project, {**(settings or {}), **mode, **secret})
    return TrackedTrial(run, outputs)


class _WandbRun:
    """Run of W&B that gets a trial's parameters, metrics, result and outputs (`RunTracker`)."""

    name = "Weights & Biases"

    def __init__(self, project: str, settings: Mapping[str, Any]) -> None:
        import wandb

        self.errors: tuple[type[Exception], ...] = (wandb.Error, OSError)
        self._wandb = wandb
        self.run: Any = wandb.init(
            project=project,
            group=nni.get_experiment_id(),
            name=nni.get_trial_id(),
            config={},
            settings=wandb.Settings(**settings),
        )
        self.run.config.update(tags())

    def log_parameters(self, values: Mapping[str, Any]) -> None:
        """See `RunTracker`."""
        self.run.config.update(dict(values))

    def log_metrics(self, values: Mapping[str, float], step: int) -> None:
        """See `RunTracker`."""
        self.run.log(dict(values), step=step)

    def log_result(self, values: Mapping[str, float]) -> None:
        """See `RunTracker`."""
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
        """See `RunTracker`."""
        self.run.finish(exit_code=0 if succeeded else 1)

"""Plug-in of Hydra: `hydra/sweeper=nni` sweeps by a tuner of NNI.

Hydra imports every module of the namespace package `hydra_plugins`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

_logger = logging.getLogger(__name__)


@dataclass
class NNISweeperConfig:
    """Configuration group `hydra/sweeper`, option `nni`."""

    _target_: str = "hydra_plugins.nni_sweeper.NNISweeper"
    tuner: str = "auto"
    """Name of the tuner."""
    tuner_args: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the tuner."""
    optimize_mode: Any = "minimize"
    """`minimize` or `maximize`; or a mapping of metric to mode, for several objectives."""
    n_trials: int = 20
    """Number of jobs."""
    n_jobs: int = 1
    """Number of jobs that the launcher gets at a time."""
    seed: int | None = None
    """Seed of the tuner."""
    max_failure_rate: float = 0.0
    """Largest part of the jobs so far that may fail."""
    params: dict[str, str] = field(default_factory=dict)
    """Sweeps by key, in the syntax of overrides; those of the command line come on top."""


ConfigStore.instance().store(
    group="hydra/sweeper", name="nni", node=NNISweeperConfig, provider="nni"
)


class NNISweeper(Sweeper):
    """Sweeper of Hydra whose jobs are the trials of a tuner.

    The return value of the task function is the result: a number, or a dict of metrics. The best
    overrides are written to `optimization_results.yaml` in the folder of the sweep.

    Args:
        settings: fields of `NNISweeperConfig`.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - values of several types
        self._settings = NNISweeperConfig(**settings)
        self._failed = 0
        self.hydra_context: HydraContext | None = None
        self.config: DictConfig | None = None
        self.launcher: Launcher | None = None

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Create the launcher; Hydra calls this first."""
        self.hydra_context = hydra_context
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> dict[str, Any]:
        """Run the jobs, and return what is written to `optimization_results.yaml`."""
        from nni.hpo import Study
        from nni.integrations._hydra_overrides import SweptOverrides

        assert self.config is not None
        assert self.hydra_context is not None
        settings = self._settings
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        given = [f"{key}={value}" for key, value in settings.params.items()]
        swept = SweptOverrides(parser.parse_overrides([*given, *arguments]))
        study = Study(
            swept.search_space(),
            tuner=settings.tuner,
            tuner_args=_plain(settings.tuner_args),
            optimize_mode=_plain(settings.optimize_mode),
            seed=settings.seed,
        )
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        asked = 0
        while asked < settings.n_trials:
            trials = _ask(study, min(settings.n_jobs, settings.n_trials - asked))
            if not trials:
                break
            jobs = [swept.job(trial.parameters) for trial in trials]
            for trial, done in zip(trials, self._launch(jobs, asked), strict=True):
                study.tell(trial, self._result(done))
            asked += len(trials)
            self._check_failures(asked)
        return _write_results(study, swept, folder)

    def _launch(self, jobs: list[list[str]], first: int) -> Sequence[JobReturn]:
        assert self.launcher is not None
        self.validate_batch_is_legal(jobs)
        return self.launcher.launch(jobs, initial_job_idx=first)

    def _result(self, done: JobReturn) -> Any:  # noqa: ANN401 - a number or a dict
        """Return the result of a job; None if it failed.

        Raises:
            Exception: exception of the job, if none may fail.
        """
        if done.status is JobStatus.COMPLETED or self._settings.max_failure_rate <= 0:
            return done.return_value  # raises what the job has raised
        self._failed += 1
        return None

    def _check_failures(self, asked: int) -> None:
        if self._failed > self._settings.max_failure_rate * asked:
            raise RuntimeError(
                f"hydra.sweeper.max_failure_rate is {self._settings.max_failure_rate}, and "
                f"{self._failed} of {asked} jobs failed"
            )


def _plain(value: Any) -> Any:  # noqa: ANN401 - a node of OmegaConf, or a plain value
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value


def _ask(study: Any, count: int) -> list[Any]:  # noqa: ANN401 - a study, imported when it is used
    from nni import NoMoreTrialError

    trials: list[Any] = []
    while len(trials) < count:
        try:
            trials.append(study.ask())
        except NoMoreTrialError:
            break  # it has none left, or none before the results of these
    return trials


def _write_results(study: Any, swept: Any, folder: Path) -> dict[str, Any]:  # noqa: ANN401 - as above
    found: dict[str, Any] = {"name": "nni"}
    points = study.pareto_front
    solutions = [
        {"params": swept.values(point.trial.parameters), "values": dict(point.values)}
        for point in points
    ]
    if points and len(points[0].values) == 1:
        found["best_params"] = swept.values(study.best_parameters)
        found["best_value"] = study.best_value
        _logger.info("best value %s with %s", found["best_value"], found["best_params"])
    else:
        found["solutions"] = solutions
    OmegaConf.save(OmegaConf.create(found), folder / "optimization_results.yaml")
    return found

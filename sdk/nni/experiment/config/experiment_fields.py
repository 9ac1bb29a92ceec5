"""Fields of `ExperimentConfig`, schema v2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from nni.experiment.config.algorithm import AlgorithmConfig, AlgorithmSection
from nni.experiment.config.base import (
    AbsolutePath,
    ConfigModel,
    Count,
    DurationText,
    Flag,
    GpuIndices,
    HostText,
    Integer,
    Text,
    absolute_path,
)
from nni.experiment.config.listed_tuners import ListedTunerConfig, TunerPolicy, portfolio_of
from nni.experiment.config.search_config import SearchConfig
from nni.experiment.config.shared_storage import SharedStorage
from nni.experiment.config.training_service_base import TrainingServiceConfig
from nni.experiment.config.training_services import (
    TrainingServices,
    new_training_service,
)
from nni.experiment.config.yaml_file import read_json_or_yaml
from nni.experiment.errors import ConfigError, Problem

DEFAULT_WORKING_DIRECTORY = "~/nni-experiments"
"""Root folder of experiments unless the configuration names another."""

LogLevel = Literal["trace", "debug", "info", "warning", "error", "fatal"]


def _plain_space(value: object) -> object:
    """Return a search space as JSON; raise ValueError, as pydantic needs it, for other values."""
    from nni.hpo.space.typed_space import as_json

    try:
        return as_json(value)
    except TypeError as error:
        raise ValueError(str(error)) from error


class ObjectiveConfig(ConfigModel):
    """Metric to optimise, with its mode."""

    metric: Text = "default"
    """Name in the reported mapping; `default` for a report that is a plain number."""
    mode: Literal["minimize", "maximize"]
    """Direction in which the metric improves."""


class ConstraintConfig(ConfigModel):
    """A limit on an outcome; a trial beyond it is infeasible."""

    metric: Text
    """Name in the reported mapping."""
    max: float
    """Largest value that is still feasible."""


class ExperimentFields(ConfigModel):
    """All fields of `ExperimentConfig` with types and defaults, and values derived from them."""

    experiment_name: Text | None = None
    """Name that the page and lists show."""
    search_space_file: AbsolutePath | None = None
    """JSON or YAML file; excludes `search_space`."""
    search_space: Annotated[Any, BeforeValidator(_plain_space)] = None
    """Any JSON value; `{}` is an empty space, `None` means not given. In Python also a dataclass, a
    pydantic model or a function that describes a space, see `nni.hpo.search_space`."""
    trial_command: Text | None = None
    """Shell command of a trial, run in the code directory."""
    trial_code_directory: AbsolutePath = Field(default_factory=lambda: absolute_path("."))
    """Folder of the trials' code; relative to the YAML file."""
    trial_concurrency: Annotated[Integer, Field(ge=1, le=99999)] | None = None
    """Most trials live at once."""
    trial_gpu_number: Count | None = None
    """GPUs of a trial; `None`: no assignment, 0: GPUs are hidden."""
    max_experiment_duration: DurationText | None = None
    """Largest duration of the experiment, such as `2h`; not given: no limit."""
    max_trial_number: Annotated[Integer, Field(ge=1, lt=2**63)] | None = None
    """Largest number of trials; not given: no limit."""
    max_trial_duration: DurationText | None = None
    """Duration after which a trial is stopped; not given: no limit."""
    max_trial_retries: Count | None = None
    """Retries of a trial that was lost with its runner; `None`: two."""
    retry_failed_trials: Annotated[Integer, Field(ge=0)] = 0
    """Retries of a trial whose command failed."""
    include_intermediate_results: Flag = False
    """True if the last intermediate result of a trial that was stopped early is its final one."""
    seed: Annotated[Integer, Field(ge=0, lt=2**63)] | None = None
    """Seed of the algorithm; `None`: one is drawn and recorded."""
    objectives: list[ObjectiveConfig] = Field(default_factory=list)
    """Metrics to optimise; empty: `default`, in the mode of the algorithm."""
    constraints: list[ConstraintConfig] = Field(default_factory=list)
    """Limits on outcomes; constraints between parameters stand in the search space."""
    search: SearchConfig | None = None
    """Initial configurations, warm start, duplicates and stopping rules."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Labels by key, to find the experiment by."""
    nni_manager_ip: HostText | None = None
    """IP address or name under which remote agents reach this machine, without a port."""
    use_annotation: Flag = False
    """Derives the search space from annotated code, of which trials run a converted copy."""
    debug: Flag = False
    """True if to log more."""
    log_level: LogLevel | None = None
    """Log level of manager and algorithm, not of trials; `None`: `debug` if `debug` is true, else
    `info`."""
    experiment_working_directory: AbsolutePath = Field(
        default_factory=lambda: absolute_path(DEFAULT_WORKING_DIRECTORY)
    )
    """Root folder; the experiment has the folder `<root>/<id>` in it."""
    tuner_gpu_indices: GpuIndices | None = None
    """GPUs that the algorithm may see."""
    tuner: AlgorithmSection = Field(default_factory=AlgorithmConfig)
    """Algorithm that proposes configurations."""
    tuners: list[ListedTunerConfig] = Field(default_factory=list)
    """Two or more tuners that share the trials, to compare them; excludes `tuner`. Short for the
    tuner `Portfolio`."""
    tuner_policy: TunerPolicy | None = None
    """Trials of each of `tuners`: `equal`, or more for the better ones by a `bandit`; `None`:
    `equal`."""
    assessor: AlgorithmSection = Field(default_factory=AlgorithmConfig)
    """Algorithm that stops trials early."""
    advisor: AlgorithmSection = Field(default_factory=AlgorithmConfig)
    """Excludes tuner and assessor."""
    training_service: TrainingServices = None
    """A section of `nni.experiment.config` or a list of them, over which trials are spread.

    Its type is open, so that the fields of whichever platform it is can be set on it.
    """
    shared_storage: SharedStorage | None = None
    """Storage that all workers mount."""

    def __init__(
        self,
        training_service_platform: str | Sequence[str] | None = None,
        **fields: Any,  # noqa: ANN401 - pydantic checks them
    ) -> None:
        if training_service_platform is None:
            super().__init__(**fields)
            return
        if "training_service" in fields or "trainingService" in fields:
            rule = "must not be given together with a platform; keep one"
            raise ConfigError([Problem("trainingService", rule)])
        if isinstance(training_service_platform, str):
            fields["training_service"] = new_training_service(training_service_platform)
        else:
            names = training_service_platform
            fields["training_service"] = [new_training_service(name) for name in names]
        super().__init__(**fields)

    def training_services(self) -> list[TrainingServiceConfig]:
        """Return the sections of the platforms as a list, in the order given; empty if none is.

        Returns:
            One section per platform, in the order given; empty if none is.
        """
        service = self.training_service
        if service is None:
            return []
        return list(service) if isinstance(service, list) else [service]

    def given(self, section: Literal["tuner", "assessor", "advisor"]) -> AlgorithmConfig | None:
        """Return an algorithm's section, None if not filled in; `tuner` may name an advisor.

        The name of an advisor under `tuner`, as in NNI 3.0, counts as the section `advisor`.
        Several `tuners` count as the tuner `Portfolio`.

        Args:
            section: name of the section.

        Returns:
            The section, or `None` if it was never filled in.
        """
        config: AlgorithmConfig = getattr(self, section)
        if section != "assessor" and self._has_advisor_as_tuner():
            return self.tuner if section == "advisor" else None
        if section == "tuner" and self.tuners and not config.is_given():
            return portfolio_of(self.tuners, self.tuner_policy)
        return config if config.is_given() else None

    def _has_advisor_as_tuner(self) -> bool:
        from nni.hpo.registry.factory import is_advisor

        return not self.advisor.is_given() and is_advisor(self.tuner.name or "")

    def effective_log_level(self) -> LogLevel:
        """Return `log_level` if given; else `debug` or `info`, by the field `debug`.

        Returns:
            `log_level` if given; else `debug` or `info`, by the field `debug`.
        """
        return self.log_level or ("debug" if self.debug else "info")

    def read_search_space(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the search space, read from its file if a file is named.

        Returns:
            The JSON value; `None` if no search space is given.

        Raises:
            ConfigError: the file cannot be read, or the space is no JSON value.
        """
        if self.search_space_file is not None:
            return read_json_or_yaml(self.search_space_file, "searchSpaceFile")
        return self.search_space

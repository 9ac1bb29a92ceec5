"""Checks of an experiment's configuration, for every client.

The SDK checks more before it sends.
"""

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Final

from google.protobuf.duration_pb2 import Duration

from nni_proto.experiment.v1 import config_pb2
from nni_wire.own_platforms import own_platform_names
from nni_wire.pools import POOL_PLATFORM
from svc_common.errors import InvalidArgumentError
from svc_manager.converters.scalars import to_ms
from svc_manager.usecases.compression_config import complete_job
from svc_manager.usecases.exploration_config import complete_exploration
from svc_manager.usecases.shared_study_config import complete_shared_study

LOG_LEVELS: Final = ("trace", "debug", "info", "warning", "error", "fatal")
PLATFORMS: Final = (
    "local",
    "remote",
    "slurm",
    "kubernetes",
    "kubeflow",
    "frameworkcontroller",
    "adl",
    "openpai",
    "aml",
    "dlc",
    "ray",
    POOL_PLATFORM,
)
"""Platforms on which this version runs trials; other packages may add some."""
DEFAULT_TUNER: Final = "auto"
"""Chooses the search algorithm by itself; see `nni.hpo.AutoTuner`."""

_CONCURRENCY_LIMIT: Final = 99_999
_NAME_LIMIT: Final = 1000
_COMMAND_LIMIT_BYTES: Final = 128 * 1024 - 1
"""Bytes of the longest argument with which Linux starts a process."""
DUPLICATE_POLICIES: Final = ("", "replicate", "resample", "reuse")
"""Policies for proposals that were evaluated before; empty: the default."""
_ENQUEUED_LIMIT: Final = 10_000
_WARM_START_LIMIT: Final = 100
WARM_START_WAYS: Final = ("", "value", "rank")
"""Ways in which results of earlier experiments enter; empty: the default."""


def choose_algorithm(config: config_pb2.ExperimentConfig) -> None:
    """Set tuner `auto`, in place, if no algorithm is set; complete a study, job or exploration."""
    if config.HasField("callers"):
        complete_shared_study(config)
    if config.HasField("nas"):
        complete_exploration(config)
    elif config.HasField("compression"):
        complete_job(config)
    elif not config.HasField("tuner") and not config.HasField("advisor"):
        config.tuner.name = DEFAULT_TUNER


def check_config(
    config: config_pb2.ExperimentConfig, platforms: Collection[str] = PLATFORMS
) -> None:
    """Raise InvalidArgumentError at the first rule a configuration breaks, by its fields alone.

    Args:
        config: the configuration.
        platforms: those that this installation has.

    Raises:
        InvalidArgumentError: the first broken rule.
    """
    _check_trials(config)
    _check_budgets(config)
    check_algorithms(config)
    _check_paths(config)
    _check_rest(config)
    named = [service.platform for service in config.training_services]
    if POOL_PLATFORM in named and len(named) > 1:
        raise InvalidArgumentError(
            "training_service",
            "must have no platform beside a pool of the installation",
            ", ".join(named)[:80],
            "put the platforms into the file of the pool: nnictl pool update",
        )
    for service in config.training_services:
        if service.platform not in platforms and service.platform not in own_platform_names():
            raise InvalidArgumentError(
                "training_service.platform",
                f"must be one of {', '.join(platforms)} in this version",
                service.platform[:80],
            )


def _check_trials(config: config_pb2.ExperimentConfig) -> None:
    if not config.trial_command.strip() and not config.HasField("callers"):
        raise InvalidArgumentError("trial_command", "must not be empty")
    length_bytes = len(config.trial_command.encode())
    if length_bytes > _COMMAND_LIMIT_BYTES:
        raise InvalidArgumentError(
            "trial_command",
            f"must have at most {_COMMAND_LIMIT_BYTES:,} bytes, or no shell could be started",
            f"{length_bytes:,}",
            "put the command into a script in the code directory",
        )
    if not 1 <= config.trial_concurrency <= _CONCURRENCY_LIMIT:
        raise InvalidArgumentError(
            "trial_concurrency", f"must be 1 to {_CONCURRENCY_LIMIT}", config.trial_concurrency
        )
    if not config.HasField("search_space"):
        raise InvalidArgumentError(
            "search_space", "must be given", remedy="write {} for an empty one"
        )


def _check_budgets(config: config_pb2.ExperimentConfig) -> None:
    if config.HasField("max_trial_number") and config.max_trial_number < 1:
        raise InvalidArgumentError("max_trial_number", "must be >= 1", config.max_trial_number)
    for name in ("max_experiment_duration", "max_trial_duration"):
        duration: Duration = getattr(config, name)
        if config.HasField(name) and to_ms(duration) <= 0:
            raise InvalidArgumentError(name, "must be positive", f"{to_ms(duration)} ms")
    for name in ("trial_gpu_number", "max_trial_retries", "retry_failed_trials"):
        number = getattr(config, name)
        if number < 0:
            raise InvalidArgumentError(name, "must be >= 0", number)


def check_algorithms(config: config_pb2.ExperimentConfig) -> None:
    """Raise InvalidArgumentError unless algorithms and options of the search may be combined.

    Raises:
        InvalidArgumentError: the first broken rule.
    """
    others = config.HasField("tuner") or config.HasField("assessor")
    if config.HasField("advisor") and others:
        raise InvalidArgumentError("advisor", "must not be combined with tuner or assessor")
    for name in ("tuner", "assessor", "advisor"):
        algorithm: config_pb2.AlgorithmConfig = getattr(config, name)
        if config.HasField(name) and algorithm.WhichOneof("source") is None:
            raise InvalidArgumentError(name, "must have a name, a class or a server address")
    _check_search(config)


def _check_search(config: config_pb2.ExperimentConfig) -> None:
    if not config.HasField("search"):
        return
    search = config.search
    if config.HasField("advisor") or config.tuner.server_address:
        raise InvalidArgumentError(
            "search", "is for tuners that run here", remedy="leave it out; the algorithm decides"
        )
    if search.duplicates not in DUPLICATE_POLICIES:
        raise InvalidArgumentError(
            "search.duplicates",
            f"must be one of {', '.join(filter(None, DUPLICATE_POLICIES))}",
            search.duplicates[:80],
        )
    stop = search.stop
    if stop.HasField("no_improvement") and stop.no_improvement < 1:
        raise InvalidArgumentError(
            "search.stop.no_improvement", "must be >= 1", stop.no_improvement
        )
    if stop.HasField("regret_bound") and not stop.regret_bound > 0:
        raise InvalidArgumentError("search.stop.regret_bound", "must be > 0", stop.regret_bound)
    if len(config.objectives) > 1 and stop.ByteSize():
        raise InvalidArgumentError("search.stop", "needs a single objective")
    if len(search.enqueue) > _ENQUEUED_LIMIT or len(search.warm_start_from) > _WARM_START_LIMIT:
        raise InvalidArgumentError(
            "search",
            f"must have at most {_ENQUEUED_LIMIT} configurations and "
            f"{_WARM_START_LIMIT} earlier experiments",
        )
    if search.warm_start_by not in WARM_START_WAYS:
        raise InvalidArgumentError(
            "search.warm_start_by", "must be value or rank", search.warm_start_by[:80]
        )
    if search.warm_start_by == "rank" and (len(config.objectives) > 1 or config.constraints):
        raise InvalidArgumentError(
            "search.warm_start_by",
            "must be value with several objectives or limits: ranks need a single order",
            search.warm_start_by,
        )


def _check_paths(config: config_pb2.ExperimentConfig) -> None:
    names = ["experiment_working_directory"]
    if not config.HasField("callers"):
        names.insert(0, "trial_code_directory")
    for name in names:
        path: str = getattr(config, name)
        if not PurePosixPath(path).is_absolute() or "\0" in path:
            raise InvalidArgumentError(name, "must be an absolute path", path[:200])


def _check_rest(config: config_pb2.ExperimentConfig) -> None:
    if config.log_level and config.log_level not in LOG_LEVELS:
        raise InvalidArgumentError(
            "log_level", f"must be one of {', '.join(LOG_LEVELS)}", config.log_level[:80]
        )
    if config.HasField("model_graph") and config.model_graph.WhichOneof("kind") != "map_value":
        raise InvalidArgumentError("model_graph", "must be a map")
    if len(config.experiment_name) > _NAME_LIMIT:
        raise InvalidArgumentError("experiment_name", f"must have at most {_NAME_LIMIT} characters")

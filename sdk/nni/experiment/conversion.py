"""Converters between configurations and messages."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final, Literal

from google.protobuf import duration_pb2

from nni.experiment.config import AlgorithmConfig, ExperimentConfig, TrainingServiceConfig
from nni.experiment.config.agent_limits import AgentLimits
from nni.experiment.config.quantities import duration_seconds
from nni.experiment.config.search_config import SearchConfig
from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_wire.values import from_value, to_value

_MODES: Final = {
    "minimize": metric_pb2.OPTIMIZE_MODE_MINIMIZE,
    "maximize": metric_pb2.OPTIMIZE_MODE_MAXIMIZE,
}
_MODE_NAMES: Final = {number: name for name, number in _MODES.items()}
_OPTIONAL_NUMBERS: Final[
    tuple[Literal["trial_gpu_number", "max_trial_number", "max_trial_retries", "seed"], ...]
] = ("trial_gpu_number", "max_trial_number", "max_trial_retries", "seed")
_DURATIONS: Final[tuple[Literal["max_experiment_duration", "max_trial_duration"], ...]] = (
    "max_experiment_duration",
    "max_trial_duration",
)
_NANOSECONDS: Final = 1_000_000_000
_SHARED_STORAGE: Final = "sharedStorage"
"""Option of each platform with the section, which its agents need."""


def config_to_proto(config: ExperimentConfig) -> config_pb2.ExperimentConfig:
    """Return a checked configuration as a message; the search space is read from its file.

    Raises:
        ConfigError: the file of the search space cannot be read.
    """
    message = config_pb2.ExperimentConfig(
        experiment_name=config.experiment_name or "",
        search_space=to_value(config.read_search_space()),
        trial_command=config.trial_command or "",
        trial_code_directory=str(config.trial_code_directory),
        trial_concurrency=config.trial_concurrency or 0,
        use_annotation=config.use_annotation,
        debug=config.debug,
        log_level=config.effective_log_level(),
        experiment_working_directory=str(config.experiment_working_directory),
        tuner_gpu_indices=config.tuner_gpu_indices or [],
        training_services=[_service(service, config) for service in config.training_services()],
        nni_manager_ip=config.nni_manager_ip or "",
        retry_failed_trials=config.retry_failed_trials,
        include_intermediate_results=config.include_intermediate_results,
        tags=config.tags,
        objectives=[
            metric_pb2.Objective(metric=item.metric, mode=_MODES[item.mode])
            for item in config.objectives
        ],
        constraints=[
            metric_pb2.OutcomeConstraint(metric=item.metric, max=item.max)
            for item in config.constraints
        ],
    )
    _write_optional(config, message)
    return message


def _write_optional(config: ExperimentConfig, message: config_pb2.ExperimentConfig) -> None:
    for name in _OPTIONAL_NUMBERS:
        number = getattr(config, name)
        if number is not None:
            setattr(message, name, number)
    for limit in _DURATIONS:
        text = getattr(config, limit)
        if text is not None:
            getattr(message, limit).CopyFrom(duration_message(duration_seconds(text)))
    if config.search is not None:
        message.search.CopyFrom(_search(config.search))
    sections: tuple[Literal["tuner", "assessor", "advisor"], ...] = (
        "tuner",
        "assessor",
        "advisor",
    )
    for section in sections:
        algorithm = config.given(section)
        if algorithm is not None:
            getattr(message, section).CopyFrom(algorithm_to_proto(algorithm))


def _search(config: SearchConfig) -> config_pb2.SearchConfig:
    message = config_pb2.SearchConfig(
        duplicates=config.duplicates,
        enqueue=map(to_value, config.enqueue),
        warm_start_from=config.experiments(),
        warm_start_by="" if config.warm_start_by == "value" else config.warm_start_by,
        stop=config_pb2.StoppingConfig(
            no_improvement=config.stop.no_improvement,
            target=config.stop.target,
            regret_bound=config.stop.regret_bound,
        ),
    )
    searches = config.samples()
    if searches and config.warm_start_by == "rank":
        message.earlier.CopyFrom(to_value(searches))
    elif known := list(chain.from_iterable(searches)):
        message.known.CopyFrom(to_value(known))
    return message


def duration_message(seconds: float) -> duration_pb2.Duration:
    """Return seconds as a protobuf Duration."""
    whole = int(seconds)
    return duration_pb2.Duration(seconds=whole, nanos=round((seconds - whole) * _NANOSECONDS))


def agent_limits_to_proto(limits: AgentLimits) -> config_pb2.AgentLimits:
    """Return a change of limits of agents as a message."""
    message = config_pb2.AgentLimits(
        min_agents=limits.min_agents,
        max_agents=limits.max_agents,
        max_cost=limits.max_cost,
        cost_per_agent_hour=limits.cost_per_agent_hour,
        removed=limits.remove or (),
    )
    if limits.idle_time is not None:
        message.idle_time.CopyFrom(duration_message(duration_seconds(limits.idle_time)))
    if limits.max_agent_time is not None:
        message.max_agent_time.CopyFrom(duration_message(duration_seconds(limits.max_agent_time)))
    return message


def algorithm_to_proto(config: AlgorithmConfig) -> config_pb2.AlgorithmConfig:
    """Return the section of a tuner, assessor or advisor as a message."""
    message = config_pb2.AlgorithmConfig()
    if config.class_name:
        message.custom.class_name = config.class_name
        message.custom.code_directory = str(config.code_directory or "")
    elif config.server_address:
        message.server_address = config.server_address
    else:
        message.name = config.name or ""
    if config.class_args:
        message.class_args.CopyFrom(to_value(config.class_args))
    return message


def _service(
    service: TrainingServiceConfig, config: ExperimentConfig
) -> config_pb2.TrainingServiceConfig:
    options = service.sent_fields()
    platform = options.pop("platform")
    if "max_trial_duration" in type(service).model_fields and config.max_trial_duration is not None:
        options.setdefault("maxTrialDuration", config.max_trial_duration)
    secret_paths = service.secret_paths()
    storage = config.shared_storage
    if storage is not None:
        options[_SHARED_STORAGE] = storage.to_dict()
        secret_paths += [f"{_SHARED_STORAGE}.{path}" for path in storage.secret_paths()]
    return config_pb2.TrainingServiceConfig(
        platform=platform, options=to_value(options), secret_paths=secret_paths
    )


def platforms_to_proto(config: ExperimentConfig) -> list[pool_pb2.PoolPlatform]:
    """Return the platforms of a configuration as messages, secret values included.

    Nothing else of the configuration is read, so it may be incomplete.
    """
    services = [_service(service, config) for service in config.training_services()]
    return [
        pool_pb2.PoolPlatform(
            platform=one.platform, options=one.options, secret_paths=one.secret_paths
        )
        for one in services
    ]


def config_from_proto(message: config_pb2.ExperimentConfig) -> ExperimentConfig:
    """Convert a message to a configuration; raise ConfigError for an unknown field.

    Raises:
        ConfigError: it was made by a newer version and this one does not know a field.
    """
    fields: dict[str, Any] = {
        "experiment_name": message.experiment_name or None,
        "search_space": from_value(message.search_space),
        "trial_command": message.trial_command or None,
        "trial_code_directory": message.trial_code_directory or None,
        "trial_concurrency": message.trial_concurrency or None,
        "use_annotation": message.use_annotation,
        "debug": message.debug,
        "log_level": message.log_level or None,
        "experiment_working_directory": message.experiment_working_directory or None,
        "tuner_gpu_indices": list(message.tuner_gpu_indices) or None,
        "training_service": _services_from(message),
        "shared_storage": _shared_storage_from(message),
        "nni_manager_ip": message.nni_manager_ip or None,
        "retry_failed_trials": message.retry_failed_trials,
        "include_intermediate_results": message.include_intermediate_results,
        "tags": dict(message.tags),
        "objectives": [
            {"metric": item.metric, "mode": _MODE_NAMES[item.mode]} for item in message.objectives
        ],
        "constraints": [{"metric": item.metric, "max": item.max} for item in message.constraints],
    }
    if message.HasField("search"):
        fields["search"] = _search_from(message.search)
    for name in _OPTIONAL_NUMBERS:
        if message.HasField(name):
            fields[name] = getattr(message, name)
    for limit in _DURATIONS:
        if message.HasField(limit):
            fields[limit] = f"{getattr(message, limit).ToTimedelta().total_seconds():.15g}s"
    section: Literal["tuner", "assessor", "advisor"]
    for section in ("tuner", "assessor", "advisor"):
        if message.HasField(section):
            fields[section] = _algorithm_from(getattr(message, section))
    return ExperimentConfig(**fields)


def _search_from(message: config_pb2.SearchConfig) -> dict[str, Any]:
    names: tuple[Literal["no_improvement", "target", "regret_bound"], ...]
    names = ("no_improvement", "target", "regret_bound")
    stop = {name: getattr(message.stop, name) for name in names if message.stop.HasField(name)}
    return {
        "duplicates": message.duplicates or "replicate",
        "enqueue": [from_value(item) for item in message.enqueue],
        "warm_start_from": list(message.warm_start_from),
        "warm_start_by": message.warm_start_by or "value",
        "stop": stop,
    }


def _services_from(message: config_pb2.ExperimentConfig) -> object:
    services = [
        {"platform": item.platform, **(from_value(item.options) or {})}
        for item in message.training_services
    ]
    for service in services:
        service.pop(_SHARED_STORAGE, None)
    return services[0] if len(services) == 1 else services or None


def _shared_storage_from(message: config_pb2.ExperimentConfig) -> dict[str, Any] | None:
    """Return the section of shared storage without the manager's mark; None if it is absent."""
    for item in message.training_services:
        section = (from_value(item.options) or {}).get(_SHARED_STORAGE)
        if section is not None:
            return {name: value for name, value in section.items() if name != "mark"}
    return None


def _algorithm_from(message: config_pb2.AlgorithmConfig) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if message.HasField("class_args"):
        fields["class_args"] = from_value(message.class_args)
    source = message.WhichOneof("source")
    if source == "custom":
        fields["class_name"] = message.custom.class_name
        fields["code_directory"] = message.custom.code_directory or None
    elif source is not None:
        fields[source] = getattr(message, source)
    return fields

"""First event of an experiment, made from its configuration."""

from nni_proto.experiment.v1 import config_pb2
from svc_manager.converters.scalars import budget_of, mode_of, settings_of
from svc_manager.domain import events


def created_event(
    experiment_id: str,
    config: config_pb2.ExperimentConfig,
    *,
    environment_sha256: str,
    interpreter: str,
    nni_version: str,
    resolved_mode: int,
) -> events.ExperimentCreated:
    """Build the `ExperimentCreated` event: configuration, settings, budget, folder, versions."""
    return events.ExperimentCreated(
        experiment_id,
        config.SerializeToString(),
        settings_of(experiment_id, config, resolved_mode),
        budget_of(config),
        f"{config.experiment_working_directory.rstrip('/')}/{experiment_id}",
        environment_sha256,
        interpreter,
        nni_version,
        mode_of(config, resolved_mode),
    )

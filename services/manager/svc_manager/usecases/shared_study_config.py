"""Configuration of experiments that are shared studies, whose trials callers run."""

from typing import Final

from google.protobuf.duration_pb2 import Duration

from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.request_checks import length_ms

DEFAULT_LEASE_S: Final = 60
SHORTEST_LEASE_MS: Final = 1_000
LONGEST_LEASE_MS: Final = 3_600_000
_EXCLUDED: Final = (
    *("assessor", "advisor", "compression", "nas", "code_archive"),
    *("max_trial_duration", "trial_gpu_number"),
)
_UNUSED: Final = (
    *("training_services", "trial_command", "trial_code_directory"),
    *("trial_concurrency", "retry_failed_trials"),
)


def complete_shared_study(config: config_pb2.ExperimentConfig) -> None:
    """Set lease, concurrency and retries of a shared study; raise for fields of agents' trials.

    Args:
        config: a configuration with `callers`; changed in place.

    Raises:
        InvalidArgumentError: a field is for trials that agents run, or the lease is out of range.
    """
    given = [name for name in _EXCLUDED if config.HasField(name)]
    given += [name for name in _UNUSED if getattr(config, name)]
    # A shared study that is created again from its own configuration has the one.
    given = [name for name in given if (name, config.trial_concurrency) != ("trial_concurrency", 1)]
    if given:
        raise InvalidArgumentError(
            given[0], "must be unset for a shared study", remedy="its callers run the trials"
        )
    lease = config.callers.lease
    if not config.callers.HasField("lease"):
        lease.CopyFrom(Duration(seconds=DEFAULT_LEASE_S))
    lease_ms = length_ms(lease, "callers.lease")
    if not SHORTEST_LEASE_MS <= lease_ms <= LONGEST_LEASE_MS:
        raise InvalidArgumentError("callers.lease", "must be 1 s to 1 h", f"{lease_ms} ms")
    if not config.HasField("max_trial_retries"):
        config.max_trial_retries = 0
    config.trial_concurrency = 1

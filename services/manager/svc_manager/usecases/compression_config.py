"""Configuration of experiments that are compression jobs."""

from typing import Final

from nni_proto.experiment.v1 import config_pb2
from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES
from svc_common.errors import InvalidArgumentError

STEP_COMMAND: Final = "python3 -m nni.compression.job"
"""Command of the trials, each of which runs one step of the job."""
_EXCLUDED: Final = ("tuner", "assessor", "advisor", "search", "search_space", "max_trial_number")
_SHARE: Final = 2
"""A set of parameters holds the job; both are stored in messages of the bus."""
JOB_LIMIT_BYTES: Final = INLINE_VALUE_LIMIT_BYTES // _SHARE


def complete_job(config: config_pb2.ExperimentConfig) -> None:
    """Set command, concurrency and search space of a compression job; raise if fields contradict.

    Args:
        config: a configuration with `compression`; changed in place.

    Raises:
        InvalidArgumentError: a field contradicts the job, or the description is too large.
    """
    for name in _EXCLUDED:
        if config.HasField(name):
            raise InvalidArgumentError(name, "must be unset for a compression job")
    size = config.compression.job.ByteSize()
    if size > JOB_LIMIT_BYTES:
        raise InvalidArgumentError(
            "compression.job",
            f"must have at most {JOB_LIMIT_BYTES} bytes",
            size,
            "put large values into a file of the code directory",
        )
    if config.trial_concurrency not in {0, 1}:
        raise InvalidArgumentError(
            "trial_concurrency",
            "must be 1 for a compression job",
            config.trial_concurrency,
            "a step starts from the result of the one before",
        )
    config.trial_concurrency = 1
    config.trial_command = config.trial_command or STEP_COMMAND
    config.search_space.map_value.SetInParent()

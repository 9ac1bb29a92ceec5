"""Configuration of experiments that are explorations of the NAS service."""

from typing import Final

from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError

CANDIDATE_COMMAND: Final = "python3 -m nni.nas.execution.training_service trial"
"""Command of the trials, each of which evaluates one candidate."""
_EXCLUDED: Final = ("tuner", "assessor", "advisor", "search")


def complete_exploration(config: config_pb2.ExperimentConfig) -> None:
    """Set command, concurrency and search space where they are unset; refuse an algorithm.

    Args:
        config: a configuration with `nas`; changed in place.

    Raises:
        InvalidArgumentError: a field contradicts the exploration.
    """
    for name in (*_EXCLUDED, "compression"):
        if config.HasField(name):
            raise InvalidArgumentError(
                name, "must be unset for an exploration", remedy="its strategy decides"
            )
    config.trial_concurrency = config.trial_concurrency or 1
    config.trial_command = config.trial_command or CANDIDATE_COMMAND
    if not config.HasField("search_space"):
        config.search_space.map_value.SetInParent()

"""Checkpoint folders that parameters name, where no machine has them in common."""

from typing import Final

from nni_proto.common.v1 import value_pb2
from svc_manager.domain.checkpoints import dead_archives
from svc_manager.domain.state import Experiment
from svc_manager.domain.values import EncodedValue

LOAD_KEY: Final = "load_checkpoint_dir"
SAVE_KEY: Final = "save_checkpoint_dir"


def folder_named(parameters: value_pb2.Value, key: str) -> str:
    """Give the folder that a parameter of this name holds; empty: there is none."""
    for entry in parameters.map_value.entries:
        if entry.key == key:
            return entry.value.string_value
    return ""


def saving_trial(experiment: Experiment, directory: str, besides: str) -> str:
    """Give the id of a trial that is not over and will save to a folder; empty: there is none.

    Args:
        experiment: whose trials.
        directory: the folder.
        besides: id of the trial that asks: one that loads from where it saves begins anew.
    """
    for trial in experiment.live.values():
        if trial.id != besides and _folder_in(trial.parameters, SAVE_KEY) == directory:
            return trial.id
    return ""


def dead_checkpoints(experiment: Experiment) -> frozenset[str]:
    """Give the hashes of archives of an experiment that none of its trials will load."""
    if not experiment.released_checkpoints:
        return frozenset()
    coming = [item.parameters for item in experiment.algorithm.queue.values()]
    coming.extend(trial.parameters for trial in experiment.live.values())
    coming.extend(experiment.custom_queue.values())
    wanted = {_folder_in(parameters, LOAD_KEY) for parameters in coming}
    return dead_archives(experiment.checkpoints, experiment.released_checkpoints, wanted)


def _folder_in(parameters: EncodedValue, key: str) -> str:
    if key.encode() not in parameters:  # nearly always: spares reading them
        return ""
    return folder_named(value_pb2.Value.FromString(parameters), key)

"""Checkpoints where machines share no folders: which task waits for one, which blobs are dead."""

from typing import Final

from nni_proto.common.v1 import value_pb2
from nni_wire.trial_blobs import LOAD_CHECKPOINT_KEY, SAVE_CHECKPOINT_KEY
from svc_manager.domain import events
from svc_manager.domain.checkpoints import dead_archives
from svc_manager.domain.state import Experiment
from svc_manager.domain.values import EncodedValue

_SUPERSEDED_AT_ONCE: Final = 16


def checkpoint_folder(parameters: value_pb2.Value, key: str) -> str:
    """Return the text of a trial's top-level parameter ``key``; empty: it has none."""
    for entry in parameters.map_value.entries:
        if entry.key == key:
            return entry.value.string_value
    return ""


def saving_trial(experiment: Experiment, directory: str, besides: str) -> str:
    """Return the id of another live trial whose parameters save to a folder; empty: none.

    Args:
        experiment: the experiment.
        directory: the folder.
        besides: id of the loading trial: one that loads from where it saves starts anew.
    """
    for trial in experiment.live.values():
        if trial.id != besides and _folder_in(trial.parameters, SAVE_CHECKPOINT_KEY) == directory:
            return trial.id
    return ""


def dead_checkpoints(experiment: Experiment) -> frozenset[str]:
    """Return hashes of superseded or released checkpoints that no queued or live trial loads."""
    superseded = _superseded(experiment)
    if not experiment.released_checkpoints:
        return superseded
    coming = [item.parameters for item in experiment.algorithm.queue.values()]
    coming.extend(trial.parameters for trial in experiment.live.values())
    coming.extend(experiment.custom_queue.values())
    wanted = {_folder_in(parameters, LOAD_CHECKPOINT_KEY) for parameters in coming}
    released = dead_archives(experiment.checkpoints, experiment.released_checkpoints, wanted)
    return superseded | (released - _resumable(experiment))


def frees_blobs(experiment: Experiment, event: events.Event) -> bool:
    """Return whether a folded event frees enough blobs: an end, or each 16th superseded checkpoint.

    Each collection lists the store, so a collection follows many superseded checkpoints.

    Args:
        experiment: the state after the event.
        event: the event.
    """
    if isinstance(event, events.ExperimentEnded):
        return True
    if not isinstance(event, events.TrialCheckpointed):
        return False
    count = len(experiment.superseded_checkpoints)
    return count > 0 and count % _SUPERSEDED_AT_ONCE == 0


def _superseded(experiment: Experiment) -> frozenset[str]:
    """Return hashes of superseded checkpoints that no folder or live trial refers to any more."""
    if not experiment.superseded_checkpoints:
        return frozenset()
    passed_on = {one.sha256 for one in experiment.checkpoints.values()}
    return frozenset(experiment.superseded_checkpoints - passed_on - _resumable(experiment))


def _resumable(experiment: Experiment) -> frozenset[str]:
    """Return hashes of the checkpoints that next attempts of live trials would load."""
    live = experiment.live.values()
    return frozenset(one.checkpoint.sha256 for one in live if one.checkpoint is not None)


def _folder_in(parameters: EncodedValue, key: str) -> str:
    if key.encode() not in parameters:  # in nearly all cases: saves the decoding
        return ""
    return checkpoint_folder(value_pb2.Value.FromString(parameters), key)

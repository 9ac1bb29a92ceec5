"""Names of trial outputs and checkpoints that manager and agents must agree on."""

from __future__ import annotations

from typing import Final

OUTPUT_KIND: Final = "output"
"""First part of the blob keys of trial outputs."""

OUTPUT_STREAMS: Final = ("stdout", "stderr")
"""Files of the streams that a trial writes; small ones are in the archive instead."""

OUTPUT_ARCHIVE: Final = "files.tar"
"""Archive of the trial's folder, without streams stored apart; stored last, it completes an
output."""

OUTPUT_FILES: Final = (*OUTPUT_STREAMS, OUTPUT_ARCHIVE)
"""Names of all files of one attempt's output, in the order in which they are stored."""

LOAD_CHECKPOINT_KEY: Final = "load_checkpoint_dir"
"""Parameter with the checkpoint folder that a trial continues from."""

SAVE_CHECKPOINT_KEY: Final = "save_checkpoint_dir"
"""Parameter with the checkpoint folder that a trial writes."""


def output_prefix(experiment_id: str) -> str:
    """Return the common prefix of the blob keys of an experiment's outputs."""
    return f"{OUTPUT_KIND}/{experiment_id}/"


def output_key(experiment_id: str, trial_id: str, attempt: int, file_name: str) -> str:
    """Return the blob key of one output file of an attempt."""
    return f"{OUTPUT_KIND}/{experiment_id}/{trial_id}/{attempt}/{file_name}"

"""Names of what trials have written, in the byte store."""

from typing import Final

OUTPUT_KIND: Final = "output"
"""First part of the names."""
OUTPUT_FILES: Final = ("stdout", "stderr", "files.tar")
"""The streams of an attempt, and its folder without them."""


LAST_FILE: Final = "files.tar"
"""Stored last: with it, an output is complete."""


def output_prefix(experiment_id: str) -> str:
    """Give what the names of all outputs of an experiment start with."""
    return f"{OUTPUT_KIND}/{experiment_id}/"


def output_key(experiment_id: str, trial_id: str, attempt: int, file_name: str) -> str:
    """Give the name of one file of an attempt."""
    return f"{OUTPUT_KIND}/{experiment_id}/{trial_id}/{attempt}/{file_name}"

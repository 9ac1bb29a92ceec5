"""Command of a trial that evaluates one model: `python -m nni.nas.execution.trial`."""

import os
import sys
from pathlib import Path
from typing import Final

import nni
from nni.nas.execution.candidate import model_from
from nni.nas.execution.saved_model import save_model
from nni.trial.reuse import run_trials

REUSE: Final = "--reuse"
"""Argument of a process that evaluates the models of several trials, one after another."""
SAVE: Final = "--save"
"""Argument of trials that leave files of their model: sample, code and weights."""


def main() -> None:
    """Evaluate the model of this trial; with `--reuse` also those of further trials.

    With the argument `--reuse` the process goes on with the models of further trials; with `--save`
    each trial leaves the files of `nni.nas.execution.saved_model` in its folder.
    """
    if REUSE in sys.argv[1:]:
        run_trials(evaluate)
    else:
        evaluate()


def evaluate() -> None:
    """Evaluate the model of the current trial; with `--save` write its files."""
    model = model_from(nni.get_next_parameter())
    if SAVE not in sys.argv[1:] or model.sample is None:
        model.execute()
        return
    network = model.executable_model()  # the model itself keeps none
    model.execute()
    save_model(model, network, Path(os.environ["NNI_OUTPUT_DIR"]))


if __name__ == "__main__":
    main()

"""Command of a trial that evaluates one model: `python -m nni.nas.execution.trial`."""

import sys
from typing import Final

import nni
from nni.nas.execution.candidate import model_from
from nni.trial.reuse import run_trials

REUSE: Final = "--reuse"
"""Argument of a process that evaluates the models of several trials, one after another."""


def main() -> None:
    """Evaluate the model of this trial; its evaluator reports the metrics.

    With the argument `--reuse` the process goes on with the models of further trials.
    """
    if REUSE in sys.argv[1:]:
        run_trials(evaluate)
    else:
        evaluate()


def evaluate() -> None:
    """Evaluate the model of the present trial."""
    model_from(nni.get_next_parameter()).execute()


if __name__ == "__main__":
    main()

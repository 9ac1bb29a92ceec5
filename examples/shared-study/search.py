"""A study that all processes of this script share: start as many as you like, at any time."""

import argparse

from nni.errors import NoMoreTrialError
from nni.experiment import SharedStudy
from nni.experiment.errors import LeaseLapsedError

SPACE = {
    "x": {"_type": "uniform", "_value": [-5, 5]},
    "y": {"_type": "uniform", "_value": [-5, 5]},
}


def loss(parameters: dict[str, float]) -> float:
    """Return the value of a configuration: 0 at x = 1, y = -2."""
    return (parameters["x"] - 1) ** 2 + (parameters["y"] + 2) ** 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20, help="how many this process evaluates")
    parser.add_argument("--name", default="sharedquadratic", help="of the study")
    arguments = parser.parse_args()
    # The same in every process: the first one creates the study, the others join it.
    with SharedStudy(arguments.name, SPACE, tuner="TPE", seed=0, retry_lost=True) as study:
        evaluated = 0
        for _ in range(arguments.trials):
            try:
                trial = study.ask()
            except NoMoreTrialError:  # the study was stopped
                break
            try:
                study.tell(trial, loss(trial.parameters))
            except LeaseLapsedError:  # cut off for a minute: another process has it now
                continue
            evaluated += 1
        results = study.results
        print(f"this process: {evaluated} trials; all: {len(results)}")
        if results:
            best = study.best_trial
            print(f"best: trial {best.id}, {study.best_value:.4f}, {best.parameters}")


if __name__ == "__main__":
    main()

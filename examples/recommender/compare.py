"""Search the hyperparameters of the recommender with seven algorithms, in one process."""

import argparse
from pathlib import Path

import yaml
from factors import bias_only, errors, make_ratings

from nni.hpo import optimize

TUNERS = ("Anneal", "SMAC", "Random", "TPE", "Metis", "Evolution")
EPOCHS = 20
"""Largest budget that Hyperband gives, as many epochs as the search space allows."""
SPACE = yaml.safe_load((Path(__file__).parent / "config.yml").read_text("utf-8"))["searchSpace"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=15, help="of each algorithm")
    parser.add_argument("--scale", type=float, default=0.3, help="part of users and of items")
    arguments = parser.parse_args()
    scale = arguments.scale
    train, test = make_ratings(int(943 * scale), int(1682 * scale), int(100_000 * scale))

    def objective(parameters):
        # The budget of Hyperband takes the place of n_epochs.
        yield from errors(parameters, train, test, parameters.get("TRIAL_BUDGET"))

    print(f"{'biases only':12} {bias_only(train, test):.4f}")
    for name in TUNERS:
        found = optimize(objective, SPACE, tuner=name, trials=arguments.trials, seed=0)
        print(f"{name:12} {found.best_value:.4f}  {len(found.trials)} trials")
    found = optimize(
        objective,
        SPACE,
        advisor="Hyperband",
        advisor_args={"R": EPOCHS, "eta": 3},
        trials=arguments.trials,
        seed=0,
    )
    print(f"{'Hyperband':12} {found.best_value:.4f}  {len(found.trials)} trials")


if __name__ == "__main__":
    main()

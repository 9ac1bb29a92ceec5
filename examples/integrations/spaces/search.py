"""Search the same problem with a space of ConfigSpace, and with one of hyperopt."""

import sys

from ConfigSpace import ConfigurationSpace
from hyperopt import hp

from nni.hpo import optimize

SPACES = {
    "ConfigSpace": ConfigurationSpace({"rate": (0.001, 1.0), "depth": (1, 12)}),
    "hyperopt": {"rate": hp.uniform("rate", 0.001, 1), "depth": hp.uniformint("depth", 1, 12)},
}


def loss(parameters):
    return (parameters["rate"] - 0.3) ** 2 + (parameters["depth"] - 7) ** 2


def main(trials=30):
    for name, space in SPACES.items():
        found = optimize(loss, space, tuner="TPE", trials=trials, seed=0)
        print(f"{name}: {found.best_value:.4f} at depth {found.best_parameters['depth']}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

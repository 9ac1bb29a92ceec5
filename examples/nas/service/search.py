"""Search a network of digits with a strategy that the NAS service hosts."""

import argparse

from space import DigitsSpace
from training import evaluate

from nni.experiment import LocalConfig, PoolConfig
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.strategy import RegularizedEvolution


def build(models=8, epochs=3, concurrency=2, pool=""):
    """Return the search; `nnictl nas create search:build` starts it, too.

    Trials run on this machine, or on the agents of a pool.
    """
    config = NasExperimentConfig(
        "service",
        "simplified",
        training_service=PoolConfig(name=pool) if pool else LocalConfig(),
        trial_concurrency=concurrency,
        max_trial_number=models,
        worker_reuse=True,
    )
    strategy = RegularizedEvolution(population_size=4, sample_size=2, seed=0)
    return NasExperiment(
        DigitsSpace(), FunctionalEvaluator(evaluate, epochs=epochs), strategy, config
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=8, help="networks that are trained")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of each network")
    parser.add_argument("--port", type=int, default=0, help="port of the page; 0: none")
    parser.add_argument("--pool", default="", help="pool of agents; not given: this machine")
    arguments = parser.parse_args()
    experiment = build(arguments.models, arguments.epochs, pool=arguments.pool)
    experiment.run(arguments.port)
    for model in experiment.export_top_models(top_k=2):
        print(f"{model.metric:.2f} %  {dict(model.sample)}")
    experiment.stop()


if __name__ == "__main__":
    main()

"""Search the best of 18 networks by random search and by evolution."""

import argparse

import torch
from space import DigitsSpace
from training import evaluate

from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.space import SimplifiedModelSpace, model_context
from nni.nas.strategy import Random, RegularizedEvolution


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=10, help="networks that each one trains")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of each network")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the networks are too small for more
    space = SimplifiedModelSpace.from_model(
        DigitsSpace(), FunctionalEvaluator(evaluate, epochs=arguments.epochs)
    )
    strategies = {
        "random": Random(seed=0),
        "evolution": RegularizedEvolution(population_size=4, sample_size=2, seed=0),
    }
    print(f"{'strategy':<12}{'trained':>8}{'best %':>8}  sample")
    for name, strategy in strategies.items():
        engine = SequentialExecutionEngine(max_model_count=arguments.models)
        strategy(space, engine)
        best = next(iter(strategy.list_models(limit=1)))
        trained = len(list(engine.list_models()))
        print(f"{name:<12}{trained:>8}{best.metric:>8.2f}  {dict(best.sample)}")

    # The sample is all that is needed to build the network again, with fresh weights.
    with model_context(best.sample):
        network = DigitsSpace()
    print(f"\nThe last one has {sum(one.numel() for one in network.parameters()):,} parameters.")


if __name__ == "__main__":
    main()

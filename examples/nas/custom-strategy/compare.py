"""Compare local search with random search and evolution on networks for handwritten digits."""

import argparse
import statistics

import torch
from local_search import LocalSearch
from sklearn.datasets import load_digits
from torch import nn

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableLinear, Repeat
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy import Random, RegularizedEvolution

TRAIN = 300
"""Images of the training, of 1,797."""


class DigitsSpace(ModelSpace):
    """6 widths x 4 activations x 3 depths; with rate and batch of the training 2,304 points."""

    def __init__(self):
        super().__init__()
        width = nni.choice("width", [2, 4, 8, 16, 32, 64])
        activations = {"relu": nn.ReLU(), "tanh": nn.Tanh(), "gelu": nn.GELU(), "sig": nn.Sigmoid()}
        self.first = MutableLinear(64, width)
        self.activation = LayerChoice(activations, label="activation")
        self.body = Repeat(lambda index: MutableLinear(width, width), (1, 3), label="depth")
        self.head = MutableLinear(width, 10)

    def forward(self, images):
        return self.head(self.activation(self.body(self.activation(self.first(images)))))


def evaluate(model, rate, batch, images, labels):
    """Train a network for one epoch, and report its accuracy in percent on other images."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for rows in torch.split(torch.randperm(TRAIN), batch):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        correct = model(images[TRAIN:]).argmax(1) == labels[TRAIN:]
    nni.report_final_result(100 * correct.float().mean().item())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=30, help="networks of each search")
    parser.add_argument("--seeds", type=int, default=5, help="searches of each strategy")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the networks are too small for more
    found = load_digits()
    evaluator = FunctionalEvaluator(
        evaluate,
        rate=nni.choice("rate", [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]),
        batch=nni.choice("batch", [10, 30, 100, 300]),
        images=torch.tensor(found.data, dtype=torch.float32) / 16,
        labels=torch.tensor(found.target),
    )
    strategies = {
        "random": lambda seed: Random(seed=seed),
        "evolution": lambda seed: RegularizedEvolution(
            population_size=10, sample_size=5, mutation_prob=0.3, seed=seed
        ),
        "local": LocalSearch,
    }
    print(f"{'strategy':<12}{'best %':>8}  sample of the first search")
    for name, make in strategies.items():
        best = []
        for seed in range(arguments.seeds):
            strategy = make(seed)
            space = RawFormatModelSpace.from_model(DigitsSpace(), evaluator)
            strategy(space, SequentialExecutionEngine(max_model_count=arguments.models))
            best.append(strategy.list_models(limit=1)[0])
        mean = statistics.fmean(model.metric for model in best)
        print(f"{name:<12}{mean:>8.2f}  {dict(best[0].sample)}")


if __name__ == "__main__":
    main()

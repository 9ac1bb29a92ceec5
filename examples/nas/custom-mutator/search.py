"""Search a space of two mutators for each of two blocks, and print the best network as code."""

import argparse
import tempfile

import torch
from blocks import BaseNet
from mutators import BlockMutator, SkipMutator
from sklearn.datasets import load_digits
from torch import nn

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment
from nni.nas.space import GraphModelSpace
from nni.nas.strategy import RegularizedEvolution

TRAINED = 1200
"""Images for training, of 1,797."""


def evaluate(network, epochs):
    """Train a network, and report its accuracy on the other images in percent."""
    torch.manual_seed(0)
    found = load_digits()
    images, labels = torch.tensor(found.images).float()[:, None] / 16, torch.tensor(found.target)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(TRAINED), 64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images[rows]), labels[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        correct = network(images[TRAINED:]).argmax(1) == labels[TRAINED:]
    nni.report_final_result(100 * correct.float().mean().item())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=12, help="networks to train")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of each network")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the networks are too small for more

    anchors = ("first", "second")
    mutators = [make(anchor) for anchor in anchors for make in (BlockMutator, SkipMutator)]
    space = GraphModelSpace.from_model(BaseNet(), mutators=mutators)
    experiment = NasExperiment(
        space,
        FunctionalEvaluator(evaluate, epochs=arguments.epochs),
        RegularizedEvolution(population_size=6, sample_size=3, seed=0),
    )
    experiment.config.execution_engine = "sequential"
    experiment.config.max_trial_number = arguments.models
    experiment.config.experiment_working_directory = tempfile.mkdtemp()
    experiment.run()

    (best,) = experiment.export_top_models()
    print(f"{best.metric:.2f} % by {dict(best.sample)}\n")
    print(experiment.export_top_models(formatter="code")[0])
    experiment.stop()


if __name__ == "__main__":
    main()

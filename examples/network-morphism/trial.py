"""Train the network that the tuner proposes on the handwritten digits of scikit-learn."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import torch
from sklearn.datasets import load_digits
from torch import nn

import nni
from nni.hpo import NetworkMorphismTuner
from nni.hpo.tuners.network_morphism.graph import json_to_graph

SHAPE = {"input_width": 8, "input_channel": 1, "n_output_node": 10}
TEST = 450
"""Images of the test, of 1,797."""
EPOCHS = 5
BATCH = 64
RATE = 2e-3


def digits():
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(found.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    images, labels = images[order], labels[order]
    return (images[TEST:], labels[TEST:]), (images[:TEST], labels[:TEST])


def accuracies(architecture):
    """Train a network; yield its accuracy on the test images after each epoch."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = json_to_graph(architecture).produce_torch_model()
    (images, labels), (test_images, test_labels) = digits()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    for _epoch in range(EPOCHS):
        model.train()
        for rows in torch.split(torch.randperm(len(images)), BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            yield (model(test_images).argmax(1) == test_labels).float().mean().item()


def main():
    architecture = nni.get_next_parameter()
    if not architecture:  # outside of an experiment: the first network of the tuner
        tuner = NetworkMorphismTuner(**SHAPE, default_model_width=16)
        architecture = tuner.generate_parameters(0)
    for accuracy in accuracies(architecture):
        nni.report_intermediate_result(accuracy)
    nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()

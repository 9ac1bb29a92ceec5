"""Train one network with one optimizer on handwritten digits, and report each epoch."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials that run side by side share the cores

import torch
from networks import build
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import nni

EPOCHS = 5
BATCH = 32
DEFAULTS = {"lr": 0.01, "optimizer": "Adam", "model": "resnet18"}


def accuracies(parameters):
    """Yield the accuracy on the test images after each epoch."""
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16.0, dtype=torch.float32).reshape(-1, 1, 8, 8)
    train, test, train_labels, test_labels = train_test_split(
        images, torch.tensor(labels), test_size=0.25, random_state=99
    )
    network = build(parameters["model"])
    make_optimizer = getattr(torch.optim, parameters["optimizer"])
    optimizer = make_optimizer(network.parameters(), lr=parameters["lr"])
    for _epoch in range(EPOCHS):
        network.train()
        for batch in torch.randperm(len(train)).split(BATCH):
            loss = nn.functional.cross_entropy(network(train[batch]), train_labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            yield (network(test).argmax(1) == test_labels).float().mean().item()


def main():
    torch.set_num_threads(1)
    for accuracy in accuracies(DEFAULTS | nni.get_next_parameter()):
        nni.report_intermediate_result(accuracy)
    nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()

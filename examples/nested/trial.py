"""Build the layers that the search space chose, and train the network on handwritten digits."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials that run side by side share the cores

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import nni

EPOCHS = 5
BATCH = 32
DEFAULTS = {
    "layer1": {"_name": "conv", "channels": 16, "kernel": 3},
    "layer2": {"_name": "pool", "kind": "max"},
    "layer3": {"_name": "none"},
    "lr": 0.01,
}


def layer(choice, channels):
    """Return a layer for an input of `channels`, and the channels of its output."""
    if choice["_name"] == "conv":
        width, kernel = choice["channels"], choice["kernel"]
        convolution = nn.Conv2d(channels, width, kernel, padding=kernel // 2)
        return nn.Sequential(convolution, nn.ReLU()), width
    if choice["_name"] == "pool":
        return (nn.MaxPool2d(2) if choice["kind"] == "max" else nn.AvgPool2d(2)), channels
    return nn.Identity(), channels


def build(parameters):
    """Return the network: three chosen layers and a linear one."""
    layers, channels = [], 1
    for name in ("layer1", "layer2", "layer3"):
        chosen, channels = layer(parameters[name], channels)
        layers.append(chosen)
    body = nn.Sequential(*layers, nn.Flatten())
    features = body(torch.zeros(1, 1, 8, 8)).shape[1]
    return nn.Sequential(body, nn.Linear(features, 10))


def accuracies(parameters):
    """Yield the accuracy on the test images after each epoch."""
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16.0, dtype=torch.float32).reshape(-1, 1, 8, 8)
    train, test, train_labels, test_labels = train_test_split(
        images, torch.tensor(labels), test_size=0.25, random_state=99
    )
    network = build(parameters)
    optimizer = torch.optim.Adam(network.parameters(), lr=parameters["lr"])
    for _epoch in range(EPOCHS):
        for batch in torch.randperm(len(train)).split(BATCH):
            loss = nn.functional.cross_entropy(network(train[batch]), train_labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            yield (network(test).argmax(1) == test_labels).float().mean().item()


def main():
    torch.set_num_threads(1)
    for accuracy in accuracies(DEFAULTS | nni.get_next_parameter()):
        nni.report_intermediate_result(accuracy)
    nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()

"""Digits of scikit-learn and networks of two sizes, with their training."""

import torch
from sklearn.datasets import load_digits
from torch import nn

MODELS = {"small": [64], "large": [256, 128]}
"""Widths of the hidden layers."""
TEST = 450
"""Images of the test, of 1,797."""
LABELLED = 200
"""Images that the fine-tuning of a student may use."""
BATCH = 32


def make_network(name):
    layers, width = [], 64
    for hidden in MODELS[name]:
        layers += [nn.Linear(width, hidden), nn.ReLU()]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, 10))


def digits():
    """Return images and labels for training, and those of the test."""
    found = load_digits()
    images = torch.tensor(found.data, dtype=torch.float32) / 16
    labels = torch.tensor(found.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    images, labels = images[order], labels[order]
    return (images[TEST:], labels[TEST:]), (images[:TEST], labels[:TEST])


def train(model, images, labels, epochs, loss_of, rate=2e-3):
    """Train; `loss_of` computes the loss of a batch from its images, logits and labels."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(images)), BATCH):
            optimizer.zero_grad()
            loss_of(images[rows], model(images[rows]), labels[rows]).backward()
            optimizer.step()


def accuracy(model, images, labels):
    """Return the part of the images that are classified correctly, in percent."""
    with torch.no_grad():
        return 100 * (model(images).argmax(1) == labels).float().mean().item()

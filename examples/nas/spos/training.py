"""Data, and the training and the measurement of one network."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

SEED = 0
TRAIN, VALIDATION = 900, 447
"""Images of training and validation, of 1,797; the rest is the test."""
BATCH = 50


def digits():
    """Return data sets for training, validation and test."""
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(found.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(SEED))
    parts = order.split([TRAIN, VALIDATION, len(order) - TRAIN - VALIDATION])
    return [TensorDataset(images[rows], labels[rows]) for rows in parts]


def accuracy(network, data):
    """Return the accuracy in percent."""
    images, labels = data.tensors
    network.eval()
    with torch.no_grad():
        return 100 * (network(images).argmax(1) == labels).float().mean().item()


def train(network, data, epochs):
    """Train a network from its present weights."""
    images, labels = data.tensors
    optimizer = torch.optim.Adam(network.parameters(), 5e-3)
    network.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images[rows]), labels[rows]).backward()
            optimizer.step()

"""Digits of scikit-learn, a small convolutional network, and their training."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 0
TEST = 450
"""Images of the test, of 1,797."""
BATCH = 32
RATE = 5e-3


class Digits:
    """Images of 8 x 8 pixels, for training and for the test."""

    def __init__(self):
        found = load_digits()
        images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
        labels = torch.tensor(found.target)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(SEED))
        self.train = images[order[TEST:]], labels[order[TEST:]]
        self.test = images[order[:TEST]], labels[order[:TEST]]

    def batches(self):
        images, labels = self.train
        for rows in torch.split(torch.randperm(len(images)), BATCH):
            yield images[rows], labels[rows]

    @property
    def steps_per_epoch(self):
        return -(-len(self.train[0]) // BATCH)


def make_network():
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]

    torch.manual_seed(SEED)
    return nn.Sequential(
        *block(1, 16),
        *block(16, 32),
        nn.MaxPool2d(2),
        *block(32, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def loss_of(batch, model):
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


def train(model, digits, epochs):
    """Train with a learning rate that falls to zero along a cosine."""
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, epochs * digits.steps_per_epoch
    )
    model.train()
    for _ in range(epochs):
        for batch in digits.batches():
            optimizer.zero_grad()
            loss_of(batch, model).backward()
            optimizer.step()
            schedule.step()


def accuracy(model, digits):
    """Return the part of the test images that are classified correctly, in percent."""
    images, labels = digits.test
    model.eval()
    with torch.no_grad():
        return 100 * (model(images).argmax(1) == labels).float().mean().item()

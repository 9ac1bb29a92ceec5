"""Model and evaluator of the job: a network that tells the directions of noisy stripes apart."""

import itertools
import math

import torch
from torch import nn

from nni.compression import TorchEvaluator

SIZE = 12
"""Width and height of an image."""
TRAIN, TEST = 1200, 400
BATCH = 32
NOISE = 2.0


def load():
    """Return images and directions, horizontal, vertical or diagonal, for training and test."""
    generator = torch.Generator().manual_seed(0)
    count = TRAIN + TEST
    labels = torch.randint(0, 3, (count,), generator=generator)
    phases = torch.rand(count, 1, 1, generator=generator) * 2 * math.pi
    rows, columns = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    distances = torch.stack([rows, columns, (rows + columns) / math.sqrt(2)])[labels]
    noise = NOISE * torch.randn(count, SIZE, SIZE, generator=generator)
    images = (torch.sin(distances * 1.5 + phases) + noise)[:, None]
    return (images[:TRAIN], labels[:TRAIN]), (images[TRAIN:], labels[TRAIN:])


def make(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, 3),
    )


def training_step(batch, model):
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
    """Train for a number of optimizer steps, or of epochs."""
    images, labels = load()[0]
    batches = (
        (images[rows], labels[rows])
        for _ in itertools.count()
        for rows in torch.split(torch.randperm(len(images)), BATCH)
    )
    model.train()
    limit = max_steps or max_epochs * -(-len(images) // BATCH)
    for batch in itertools.islice(batches, limit):
        optimizer.zero_grad()
        step(batch, model).backward()
        optimizer.step()


def evaluate(model):
    """Return the accuracy on the test images, in percent."""
    images, labels = load()[1]
    model.eval()
    with torch.no_grad():
        return 100 * (model(images).argmax(1) == labels).float().mean().item()


def make_evaluator(model):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    example = load()[1][0][:64]
    return TorchEvaluator(
        train, optimizer, training_step, dummy_input=example, evaluating_func=evaluate
    )

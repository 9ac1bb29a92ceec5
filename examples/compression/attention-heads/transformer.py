"""Transformer that reads a digit of scikit-learn row by row, and its training."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 0
TEST = 450
"""Images of the test, of 1,797."""
BATCH = 32
RATE = 3e-3
ROWS = 8
WIDTH = 32
HEADS = 4


class Attention(nn.Module):
    """Attention with four Linear layers, as models of the package transformers have it."""

    def __init__(self):
        super().__init__()
        self.heads = HEADS
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, tokens):
        layers = (self.query, self.key, self.value)
        query, key, value = (
            layer(tokens).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in layers
        )
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        return self.output((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        tokens = tokens + self.attention(self.first_norm(tokens))
        return tokens + self.mlp(self.second_norm(tokens))


class Transformer(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embedding = nn.Linear(ROWS, WIDTH)
        self.positions = nn.Parameter(torch.randn(ROWS, WIDTH) * 0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.classifier = nn.Linear(WIDTH, 10)

    def forward(self, rows):
        tokens = self.embedding(rows) + self.positions
        for layer in self.layers:
            tokens = layer(tokens)
        return self.classifier(tokens.mean(1))


class Digits:
    """Images as sequences of 8 rows of 8 pixels, for training and for the test."""

    def __init__(self):
        found = load_digits()
        images = torch.tensor(found.images, dtype=torch.float32) / 16
        labels = torch.tensor(found.target)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(SEED))
        self.train = images[order[TEST:]], labels[order[TEST:]]
        self.test = images[order[:TEST]], labels[order[:TEST]]

    def batches(self):
        images, labels = self.train
        for rows in torch.split(torch.randperm(len(images)), BATCH):
            yield images[rows], labels[rows]


def train_epoch(model, optimizer, criterion, digits):
    """Train one epoch; the loss is `criterion(outputs, labels)`."""
    model.train()
    for images, labels in digits.batches():
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def train(model, digits, epochs):
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        train_epoch(model, optimizer, nn.functional.cross_entropy, digits)
        schedule.step()


def accuracy(model, digits):
    """Return the part of the test images that are classified correctly, in percent."""
    images, labels = digits.test
    model.eval()
    with torch.no_grad():
        return 100 * (model(images).argmax(1) == labels).float().mean().item()

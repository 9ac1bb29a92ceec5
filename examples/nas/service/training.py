"""Evaluation of one network: a short training, and the accuracy on images that it has not seen."""

import functools

import torch
from sklearn.datasets import load_digits
from torch import nn

import nni

SEED = 0
TEST = 450
"""Images of the test, of 1,797."""
BATCH = 64
RATE = 5e-3


@functools.cache
def digits():
    """Return images and labels for training, and for the test."""
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(found.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(SEED))
    train, test = order[TEST:], order[:TEST]
    return (images[train], labels[train]), (images[test], labels[test])


def evaluate(model, epochs):
    """Train a network and report the accuracy in percent: after each epoch, and at the end."""
    torch.manual_seed(SEED)
    (images, labels), (test_images, test_labels) = digits()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    accuracy = 0.0
    for _ in range(epochs):
        model.train()
        for rows in torch.split(torch.randperm(len(images)), BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            correct = model(test_images).argmax(1) == test_labels
        accuracy = 100 * correct.float().mean().item()
        nni.report_intermediate_result(accuracy)
    nni.report_final_result(accuracy)

"""Train a small conditional GAN, which generates images from label maps, for three epochs."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
from pathlib import Path

import torch
from gan_images import DATASETS, pairs
from gan_networks import make_discriminator, make_generator
from torch import nn
from trial import USUAL

import nni

EPOCHS = 3
BATCH = 4
TEST = 40
"""Pairs of the test."""
GRADIENT_PENALTY = 10.0


def schedules(parameters, optimizers):
    """Return what changes the learning rate of each optimizer after an epoch."""
    policy = {
        "linear": lambda one: torch.optim.lr_scheduler.LinearLR(one, 1.0, 1 / EPOCHS, EPOCHS - 1),
        "step": lambda one: torch.optim.lr_scheduler.StepLR(one, EPOCHS - 1, gamma=0.1),
        "plateau": lambda one: torch.optim.lr_scheduler.ReduceLROnPlateau(one, patience=0),
        "cosine": lambda one: torch.optim.lr_scheduler.CosineAnnealingLR(one, EPOCHS),
    }[parameters["lr_policy"]]
    return [policy(one) for one in optimizers]


def adversarial_loss(mode, judged, *, real):
    """Return the loss of judgements that should say whether images are real."""
    if mode == "wgangp":
        return -judged.mean() if real else judged.mean()
    loss = (
        nn.functional.mse_loss
        if mode == "lsgan"
        else nn.functional.binary_cross_entropy_with_logits
    )
    return loss(judged, torch.full_like(judged, float(real)))


def penalty(discriminator, labels, real, generated):
    """Return how far the discriminator's gradients between two images are from length 1."""
    part = torch.rand(len(real), 1, 1, 1)
    mixed = (part * real + (1 - part) * generated).requires_grad_()
    judged = discriminator(torch.cat([labels, mixed], dim=1)).sum()
    (gradient,) = torch.autograd.grad(judged, mixed, create_graph=True)
    return GRADIENT_PENALTY * ((gradient.flatten(1).norm(dim=1) - 1) ** 2).mean()


class Gan:
    """Generator, discriminator, and their training.

    Args:
        parameters: the eleven of the search space.
    """

    def __init__(self, parameters):
        self.generator = make_generator(parameters)
        self.discriminator = make_discriminator(parameters)
        self._mode = parameters["gan_mode"]
        self._weight = parameters["lambda_L1"]
        self._optimizers = [
            torch.optim.Adam(one.parameters(), parameters["lr"], (parameters["beta1"], 0.999))
            for one in (self.generator, self.discriminator)
        ]
        self._schedules = schedules(parameters, self._optimizers)

    def train(self, labels, images):
        """Train on one batch: first the discriminator, then the generator."""
        generating, judging = self._optimizers
        generated = self.generator(labels)
        judged_real = self.discriminator(torch.cat([labels, images], dim=1))
        judged_generated = self.discriminator(torch.cat([labels, generated.detach()], dim=1))
        loss = adversarial_loss(self._mode, judged_real, real=True)
        loss = (loss + adversarial_loss(self._mode, judged_generated, real=False)) / 2
        if self._mode == "wgangp":
            loss = loss + penalty(self.discriminator, labels, images, generated.detach())
        judging.zero_grad()
        loss.backward()
        judging.step()

        judged = self.discriminator(torch.cat([labels, generated], dim=1))
        loss = adversarial_loss(self._mode, judged, real=True)
        loss = loss + self._weight * nn.functional.l1_loss(generated, images)
        generating.zero_grad()
        loss.backward()
        generating.step()

    def end_epoch(self, error):
        for schedule in self._schedules:
            if isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
                schedule.step(error)
            else:
                schedule.step()

    def save(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.generator.state_dict(), folder / "latest_net_G.pth")
        torch.save(self.discriminator.state_dict(), folder / "latest_net_D.pth")


def errors(gan, dataset, count):
    """Train; yield the L1 error on the test images after each epoch."""
    labels, images = pairs(dataset, count, seed=0)
    test_labels, test_images = pairs(dataset, TEST, seed=1)
    for _epoch in range(EPOCHS):
        gan.generator.train()
        for rows in torch.randperm(count).split(BATCH):
            gan.train(labels[rows], images[rows])
        gan.generator.eval()
        with torch.no_grad():
            error = nn.functional.l1_loss(gan.generator(test_labels), test_images).item()
        gan.end_epoch(error)
        yield error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", choices=list(DATASETS), default="facades")
    parser.add_argument("--pairs", type=int, default=160, help="number of them for training")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    gan = Gan(USUAL | nni.get_next_parameter())
    for error in errors(gan, options.dataset, options.pairs):
        nni.report_intermediate_result(error)
    gan.save(Path(os.environ.get("NNI_OUTPUT_DIR", ".")) / "checkpoints")
    nni.report_final_result(error)


if __name__ == "__main__":
    main()

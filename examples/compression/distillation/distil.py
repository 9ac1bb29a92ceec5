"""Fine-tune a pruned student on few labels, with and without its teacher."""

import argparse
from pathlib import Path
from statistics import fmean

import torch
from network import LABELLED, MODELS, accuracy, digits, make_network, train
from torch import nn

from nni.compression.distillation import kd_loss
from nni.compression.speedup import ModelSpeedup


def load(name, folder):
    model = make_network(name)
    model.load_state_dict(torch.load(folder / "weights.pt"))
    return model


def losses(teacher, temperature):
    """Return the two losses that are compared, by name."""

    def plain(images, logits, labels):
        return nn.functional.cross_entropy(logits, labels)

    def distilled(images, logits, labels):
        with torch.no_grad():
            taught = teacher(images)
        return plain(images, logits, labels) + kd_loss(logits, taught, temperature)

    return {"plain": plain, "distilled": distilled}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="large")
    parser.add_argument("--teacher", type=Path, default=Path("teacher"), help="folder of prune.py")
    parser.add_argument("--student", type=Path, default=Path("student"), help="folder of prune.py")
    parser.add_argument("--masks", type=Path, help="by default masks.pt of the student")
    parser.add_argument("--temperature", type=float, default=4.0)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)

    (images, labels), test = digits()
    images, labels = images[:LABELLED], labels[:LABELLED]
    teacher = load(options.model, options.teacher)
    masks = torch.load(options.masks or options.student / "masks.pt")
    for name, loss_of in losses(teacher, options.temperature).items():
        found = []
        for seed in range(options.seeds):
            torch.manual_seed(seed)
            pruned = load(options.model, options.student)
            student = ModelSpeedup(pruned, images[:2], masks).speedup_model()
            train(student, images, labels, options.epochs, loss_of)
            found.append(accuracy(student, *test))
        weights = sum(one.numel() for one in student.parameters())
        each = " ".join(f"{one:.2f}" for one in found)
        print(f"{name:<10}{fmean(found):.2f} %  ({each}), {weights:,} weights")


if __name__ == "__main__":
    main()

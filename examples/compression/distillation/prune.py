"""Train a teacher, and prune it: its masked weights are the student to distil."""

import argparse
import copy
from pathlib import Path

import torch
from network import MODELS, accuracy, digits, make_network, train
from torch import nn

from nni.compression.pruning import L1NormPruner


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="large")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--sparsity", type=float, default=0.8, help="part of the neurons to go")
    parser.add_argument("--teacher", type=Path, default=Path("teacher"), help="folder to write")
    parser.add_argument("--student", type=Path, default=Path("student"), help="folder to write")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    (images, labels), test = digits()
    teacher = make_network(options.model)
    train(
        teacher,
        images,
        labels,
        options.epochs,
        lambda _, y, true: nn.functional.cross_entropy(y, true),
    )
    student = copy.deepcopy(teacher)
    hidden = [name for name, one in student.named_modules() if isinstance(one, nn.Linear)][:-1]
    pruner = L1NormPruner(student, [{"op_names": hidden, "sparse_ratio": options.sparsity}])
    _, masks = pruner.compress()
    student = pruner.unwrap_model()  # with all weights: the masks say which are left

    for folder, model in ((options.teacher, teacher), (options.student, student)):
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), folder / "weights.pt")
    torch.save(masks, options.student / "masks.pt")
    print(f"teacher: {accuracy(teacher, *test):.2f} %")


if __name__ == "__main__":
    main()

"""Prune half of the attention heads of a transformer, remove them, and fine-tune the rest."""

import argparse
import copy

import torch
from torch import nn
from transformer import HEADS, WIDTH, Digits, Transformer, accuracy, train, train_epoch

from nni.compression.pruning import TransformerHeadPruner
from nni.compression.speedup import ModelSpeedup
from nni.compression.utils import compare_latency, count_flops_params

CRITERIA = ("l1_weight", "taylorfo")
"""Norm of the weights of a head; how much the loss changes without it."""


def mask_heads(model, digits, ranking, sparsity):
    """Return the masks of the heads that matter least, and their numbers by layer."""

    def trainer(model, optimizer, criterion, epoch):
        train_epoch(model, optimizer, criterion, digits)

    pruner = TransformerHeadPruner(
        model,
        [{"op_types": ["Linear"], "op_names_re": [r".*\.attention\."], "sparse_ratio": sparsity}],
        head_hidden_dim=WIDTH // HEADS,
        dummy_input=digits.test[0][:2],
        ranking_criterion=ranking,
        # `taylorfo` sums over one epoch; a rate of 0 leaves the weights as they are.
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        trainer=trainer,
        criterion=nn.functional.cross_entropy,
    )
    _, masks = pruner.compress()
    heads = [sorted(heads) for heads in pruner.pruned_heads.values()]
    pruner.unwrap_model()
    return masks, heads


def row(name, model, dense, digits):
    """Return one line of the table: accuracy and cost of a model."""
    images = digits.test[0][:64]
    flops, _, _ = count_flops_params(model, images[:1], verbose=False)
    parameters = sum(one.numel() for one in model.parameters())
    latency = compare_latency(dense, model, images, threads=1)
    return (
        f"{name:<20}{accuracy(model, digits):>10.2f}{parameters:>12,}{flops:>12,}"
        f"{latency.after.median_ms:>12.2f}" + ("" if model is dense else f"{latency.ratio:>9.1f}x")
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20, help="of training the dense model")
    parser.add_argument("--tuning-epochs", type=int, default=5, help="of each fine-tuning")
    parser.add_argument("--sparsity", type=float, default=0.5, help="part of the heads to go")
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = Digits()
    dense = Transformer()
    train(dense, digits, options.epochs)

    print(
        f"{'':<20}{'accuracy %':>10}{'parameters':>12}{'FLOPs':>12}{'latency ms':>12}{'speed':>10}"
    )
    print(row("dense", dense, dense, digits))
    for criterion in CRITERIA:
        model = copy.deepcopy(dense)
        masks, heads = mask_heads(model, digits, criterion, options.sparsity)
        speedup = ModelSpeedup(model, digits.test[0][:8], masks)
        smaller = speedup.speedup_model()
        assert speedup.report.error < 1e-4, "the smaller model computes what the masked one did"
        train(smaller, digits, options.tuning_epochs)
        print(row(criterion, smaller, dense, digits))
        print(f"  heads removed, by layer: {heads}")


if __name__ == "__main__":
    main()

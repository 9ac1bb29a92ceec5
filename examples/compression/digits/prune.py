"""Prune a convolutional network in three ways, remove what is masked, and fine-tune the rest."""

import argparse
import copy
import itertools
import tempfile

import torch
from network import Digits, accuracy, loss_of, make_network, train

import nni
from nni.compression import TorchEvaluator
from nni.compression.pruning import AGPPruner, L1NormPruner, LotteryTicketPruner
from nni.compression.speedup import ModelSpeedup
from nni.compression.utils import compare_latency, count_flops_params

AGP_UPDATES = 6
"""Updates of the masks during the training of AGP."""
LOTTERY_ROUNDS = 3
"""Trainings from the first weights until the ticket is found."""


def one_shot(dense, digits, config_list, epochs):
    """Mask the channels with the smallest L1 norm at once."""
    pruner = L1NormPruner(dense, config_list)
    _, masks = pruner.compress()
    return pruner.unwrap_model(), masks


def agp(dense, digits, config_list, epochs):
    """Mask them step by step, while the network trains."""
    evaluator = make_evaluator(dense, digits)
    steps = max(1, epochs * digits.steps_per_epoch // (AGP_UPDATES + 1))
    ranking = L1NormPruner(dense, config_list, evaluator)
    pruner = AGPPruner(ranking, interval_steps=steps, total_times=AGP_UPDATES)
    _, masks = pruner.compress(max_steps=steps * (AGP_UPDATES + 1))
    return pruner.unwrap_model(), masks


def lottery_ticket(dense, digits, config_list, epochs):
    """Train from the first weights several times; each time more channels are masked."""
    with tempfile.TemporaryDirectory() as folder:
        pruner = LotteryTicketPruner(
            make_network(),
            config_list,
            pruning_algorithm="l1",
            total_iteration=LOTTERY_ROUNDS,
            log_dir=folder,
            finetuner=lambda model: train(model, digits, epochs),
        )
        pruner.compress()
        _, ticket, masks, _, _ = pruner.get_best_result()
    return ticket, masks


ROUTES = {"one-shot L1": one_shot, "AGP": agp, "lottery ticket": lottery_ticket}


def make_evaluator(model, digits):
    """Return an evaluator, by which a pruner trains the model."""

    def training(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        model.train()
        endless = (batch for _ in itertools.count() for batch in digits.batches())
        for batch in itertools.islice(endless, max_steps):
            optimizer.zero_grad()
            step(batch, model).backward()
            optimizer.step()

    optimizer = nni.trace(torch.optim.Adam)(model.parameters(), 1e-3)
    return TorchEvaluator(training, optimizer, loss_of)


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


def compress(name, dense, digits, sparsity, epochs):
    """Return a smaller network, and the error of the removal before it was fine-tuned."""
    torch.manual_seed(1)
    config_list = [{"op_types": ["Conv2d"], "sparse_ratio": sparsity}]
    masked, masks = ROUTES[name](copy.deepcopy(dense), digits, config_list, epochs)
    speedup = ModelSpeedup(masked, digits.test[0][:8], masks)
    smaller = speedup.speedup_model()
    train(smaller, digits, epochs)
    return smaller, speedup.report.error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15, help="of training the dense network")
    parser.add_argument("--tuning-epochs", type=int, default=5, help="of each later training")
    parser.add_argument("--sparsity", type=float, default=0.5, help="part of the channels to go")
    options = parser.parse_args()

    torch.set_num_threads(1)
    digits = Digits()
    dense = make_network()
    train(dense, digits, options.epochs)

    print(
        f"{'':<20}{'accuracy %':>10}{'parameters':>12}{'FLOPs':>12}{'latency ms':>12}{'speed':>10}"
    )
    print(row("dense", dense, dense, digits))
    for name in ROUTES:
        smaller, error = compress(name, dense, digits, options.sparsity, options.tuning_epochs)
        assert error < 1e-4, "the smaller network computes what the masked one did"
        print(row(name, smaller, dense, digits))


if __name__ == "__main__":
    main()

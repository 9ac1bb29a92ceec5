"""One step of one member of a population: load the weights, train for a while, save them."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import nni

SEED = 0
BATCHES = 40
"""Of one step."""
BATCH = 32
ALONE = {"learning_rate": 0.1, "decay": 1e-4}
"""Defaults of one step without an experiment."""


def weights_of(folder):
    """Return the weights that a step before has left, or new ones."""
    file = Path(folder) / "weights.npz" if folder else None
    if file is None or not file.exists():  # the first step
        start = np.random.default_rng(SEED)
        return {"inner": start.normal(0, 0.1, (64, 32)), "outer": start.normal(0, 0.1, (32, 10))}
    with np.load(file) as saved:
        return dict(saved)


def answers(weights, images):
    """Return what the hidden layer makes of images, and the probability of each digit."""
    hidden = np.tanh(images @ weights["inner"])
    scores = hidden @ weights["outer"]
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, odds / odds.sum(axis=1, keepdims=True)


def train(weights, images, labels, learning_rate, decay, order):
    """Take one step of gradient descent for each batch, in place."""
    for _batch in range(BATCHES):
        chosen = order.integers(len(images), size=BATCH)
        hidden, wrong = answers(weights, images[chosen])
        wrong[np.arange(BATCH), labels[chosen]] -= 1
        back = (wrong @ weights["outer"].T) * (1 - hidden**2)
        for name, slope in (("outer", hidden.T @ wrong), ("inner", images[chosen].T @ back)):
            weights[name] -= learning_rate * (slope / BATCH + decay * weights[name])


def main():
    parameters = ALONE | nni.get_next_parameter()
    images, labels = load_digits(return_X_y=True)
    learn, test, learn_labels, test_labels = train_test_split(
        images / 16.0, labels, test_size=0.4, random_state=SEED, stratify=labels
    )

    weights = weights_of(parameters.get("load_checkpoint_dir"))
    order = np.random.default_rng(nni.get_sequence_id())
    train(weights, learn, learn_labels, parameters["learning_rate"], parameters["decay"], order)

    if "save_checkpoint_dir" in parameters:
        folder = Path(parameters["save_checkpoint_dir"])
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "weights.npz", **weights)
    _hidden, odds = answers(weights, test)
    nni.report_final_result(float((odds.argmax(axis=1) == test_labels).mean()))


if __name__ == "__main__":
    main()

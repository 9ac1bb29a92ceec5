"""Train a small network for as many epochs as ASHA grants, from a checkpoint if there is one."""

import pickle
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import nni

SEED = 0
ALONE = {"units": 32, "learning_rate": 0.01, "alpha": 1e-4, "batch": 32, "TRIAL_BUDGET": 5}
"""Defaults without an experiment."""


def restored(folder):
    """Return the classifier and the epochs of an earlier trial with the same parameters."""
    file = Path(folder) / "network.pkl" if folder else None
    if file is None or not file.exists():
        return None, 0  # the first rung; without checkpoints a trial simply starts over
    return pickle.loads(file.read_bytes())  # noqa: S301 - written below


def kept(folder, classifier, epochs):
    """Leave both to the trial that may follow."""
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "network.pkl").write_bytes(pickle.dumps((classifier, epochs)))


def main():
    parameters = ALONE | nni.get_next_parameter()
    images, labels = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        images / 16.0, labels, test_size=0.4, random_state=SEED, stratify=labels
    )

    classifier, epochs = restored(parameters.get("load_checkpoint_dir"))
    classifier = classifier or MLPClassifier(
        (parameters["units"],),
        learning_rate_init=parameters["learning_rate"],
        alpha=parameters["alpha"],
        batch_size=parameters["batch"],
        random_state=SEED,
    )
    print(f"from epoch {epochs} to {parameters['TRIAL_BUDGET']}")
    for _epoch in range(epochs, parameters["TRIAL_BUDGET"]):
        classifier.partial_fit(train, train_labels, classes=np.arange(10))
        accuracy = classifier.score(test, test_labels)
        nni.report_intermediate_result(accuracy)
    kept(parameters.get("save_checkpoint_dir"), classifier, parameters["TRIAL_BUDGET"])
    nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()

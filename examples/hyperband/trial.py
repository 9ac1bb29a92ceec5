"""Train a small network on handwritten digits for as many epochs as the advisor grants."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials that run side by side share the cores

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import nni

DEFAULTS = {"batch_size": 32, "hidden_size": 128, "lr": 0.1, "momentum": 0.5, "TRIAL_BUDGET": 5}


def accuracies(parameters):
    """Yield the accuracy on the test images after each epoch."""
    images, labels = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        images / 16.0, labels, test_size=0.25, random_state=99
    )
    network = MLPClassifier(
        (parameters["hidden_size"],),
        solver="sgd",
        batch_size=parameters["batch_size"],
        learning_rate_init=parameters["lr"],
        momentum=parameters["momentum"],
        random_state=0,
    )
    for _epoch in range(parameters["TRIAL_BUDGET"]):
        network.partial_fit(train, train_labels, classes=range(10))
        yield network.score(test, test_labels)


def main():
    for accuracy in accuracies(DEFAULTS | nni.get_next_parameter()):
        nni.report_intermediate_result(accuracy)
    nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()

"""Train a small network on handwritten digits with one of the listed solvers."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials that run side by side share the cores

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import nni

EPOCHS = 10
DEFAULTS = {"optimizer": "Adam", "learning_rate": 0.001}


def accuracies(parameters):
    """Yield the accuracy on the test images after each epoch."""
    images, labels = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        images / 16.0, labels, test_size=0.25, random_state=99
    )
    network = MLPClassifier(
        (64,),
        solver=parameters["optimizer"].lower(),
        learning_rate_init=parameters["learning_rate"],
        batch_size=32,
        random_state=0,
    )
    for _epoch in range(EPOCHS):
        network.partial_fit(train, train_labels, classes=range(10))
        yield network.score(test, test_labels)


def main():
    for accuracy in accuracies(DEFAULTS | nni.get_next_parameter()):
        nni.report_intermediate_result(accuracy)
    nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()

"""Scale a small network in depth, width and resolution, and train it on handwritten digits."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials that run side by side share the cores

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import nni

EPOCHS = 6
LAYERS, UNITS, PIXELS = 2, 24, 5
"""The small network: its depth, its width, and the side of the images it sees."""
DEFAULTS = {"alpha": 1.2, "beta": 1.1, "gamma": 1.2}


def cropped(images, side):
    """Return the middle of images of 8 x 8 pixels, `side` x `side` of them, as rows."""
    start = (8 - side) // 2
    square = images.reshape(-1, 8, 8)[:, start : start + side, start : start + side]
    return square.reshape(len(images), -1) / 16.0


def accuracies(parameters):
    """Yield the accuracy on the test images after each epoch."""
    depth = round(parameters["alpha"] * LAYERS)
    width = round(parameters["beta"] * UNITS)
    side = min(8, round(parameters["gamma"] * PIXELS))
    images, labels = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        cropped(images, side), labels, test_size=0.25, random_state=99
    )
    network = MLPClassifier(
        (width,) * depth, batch_size=32, learning_rate_init=0.003, random_state=0
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

"""Train a classifier of handwritten digits; report how good it is and how long it thinks."""

import time
import warnings
from statistics import median

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import nni

SEED = 0
QUESTIONS = 50
"""Single images that latency is measured with."""


def build(model):
    """Return the classifier that the chosen branch of the search space describes."""
    if model["_name"] == "forest":
        return RandomForestClassifier(
            model["trees"], max_depth=model["max_depth"], random_state=SEED
        )
    units = (model["units"],) * model["layers"]
    return MLPClassifier(units, max_iter=model["epochs"], random_state=SEED)


def latency_ms(classifier, images):
    """Return how long one answer takes, in milliseconds; the median, as others use the machine."""
    took = []
    for image in images[:QUESTIONS]:
        start = time.perf_counter()
        classifier.predict(image.reshape(1, -1))
        took.append(1000 * (time.perf_counter() - start))
    return median(took)


def main():
    model = nni.get_next_parameter().get("model") or {
        "_name": "network",
        "units": 32,
        "layers": 1,
        "epochs": 10,
    }
    images, labels = load_digits(return_X_y=True)
    images /= 16.0  # grey values from 0 to 1
    train, test, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.4, random_state=SEED, stratify=labels
    )
    warnings.simplefilter("ignore", ConvergenceWarning)  # epochs are part of the search

    classifier = build(model).fit(train, train_labels)

    accuracy = classifier.score(test, test_labels)
    nni.report_final_result(
        {"default": accuracy, "accuracy": accuracy, "latency_ms": latency_ms(classifier, test)}
    )


if __name__ == "__main__":
    main()

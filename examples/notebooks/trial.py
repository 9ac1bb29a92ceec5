"""Train a support vector machine on handwritten digits, and report its accuracy."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import nni

DEFAULTS = {"C": 1.0, "kernel": "linear", "degree": 3, "gamma": 0.01, "coef0": 0.01}


def main():
    parameters = DEFAULTS | nni.get_next_parameter()
    images, labels = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        images / 16.0, labels, test_size=0.25, random_state=99
    )
    nni.report_final_result(SVC(**parameters).fit(train, train_labels).score(test, test_labels))


if __name__ == "__main__":
    main()

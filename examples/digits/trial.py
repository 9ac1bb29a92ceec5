"""Cross-validate one classifier on the handwritten digits that come with scikit-learn."""

import warnings

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import nni

FOLDS = 5
SEED = 0


def build(model):
    """Return the classifier that the chosen branch of the search space describes."""
    options = {key: value for key, value in model.items() if key != "_name"}
    if model["_name"] == "svm":
        return SVC(**options)
    if model["_name"] == "forest":
        return RandomForestClassifier(random_state=SEED, **options)
    return MLPClassifier(
        hidden_layer_sizes=(options["units"],),
        learning_rate_init=options["learning_rate"],
        max_iter=options["epochs"],
        random_state=SEED,
    )


def main():
    model = nni.get_next_parameter().get("model") or {"_name": "svm", "C": 1.0, "gamma": 0.001}
    images, labels = load_digits(return_X_y=True)
    images /= 16.0  # grey values from 0 to 1
    # The budget is part of the search: a network that has not settled is a fair result.
    warnings.simplefilter("ignore", ConvergenceWarning)

    scores = []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    for train, test in folds.split(images, labels):
        classifier = build(model).fit(images[train], labels[train])
        scores.append(classifier.score(images[test], labels[test]))
        accuracy = sum(scores) / len(scores)
        print(f"fold {len(scores)} of {FOLDS}: accuracy so far {accuracy:.4f}")
        nni.report_intermediate_result(accuracy)
    nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()

"""Generate the columns that the parameters choose, select among them, and train boosted trees."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import lightgbm
import numpy as np
from sklearn.metrics import roc_auc_score

import nni
from nni.feature_engineering import FeatureGenerator, GBDTSelector, chosen_features

ROWS, TRAINING = 20_000, 15_000
CATEGORIES = ["C1", "C2", "C3", "C4", "C5", "C6"]
NUMBERS = ["I1", "I2", "I3", "I4"]
VALUES = 40
"""Different values of each category."""
SPECIFICATION = {
    "count": CATEGORIES,
    "target": CATEGORIES,
    "crosscount": [CATEGORIES, CATEGORIES],
    "aggregate": [["I1", "I2"], ["C1"]],
    "nunique": [["C5"], ["C6"]],
    "histstat": ["I1"],
}
"""Columns of each operation; two lists are crossed. config.yml has a choice for each result."""
BOOSTING = {"objective": "binary", "num_threads": 1, "seed": 0, "verbosity": -1}
BOOSTING |= {"deterministic": True, "num_leaves": 15, "learning_rate": 0.1}
ROUNDS = 60
MOST_COLUMNS = 20


def clicks():
    """Return a table and its labels: a click depends on how common two pairs of categories are."""
    random = np.random.default_rng(0)
    table, score = {}, np.zeros(ROWS)
    for first, second in (("C1", "C2"), ("C3", "C4")):
        # Each value of a category occurs as often as the others, but the pairs do not.
        common = np.array(
            [np.roll(1 + 9 * (np.arange(VALUES) % 4 == 0), row) for row in range(VALUES)]
        )
        common = common[random.permutation(VALUES)][:, random.permutation(VALUES)]
        pairs = random.choice(VALUES**2, size=ROWS, p=common.ravel() / common.sum())
        table[first], table[second] = pairs // VALUES, pairs % VALUES
        score += np.where(common.ravel()[pairs] > 1, 1.0, -1.0)
    for name in CATEGORIES[4:]:
        table[name] = random.integers(VALUES, size=ROWS)
    for name in NUMBERS:
        table[name] = random.normal(size=ROWS)
    score += 0.5 * table["I1"]
    return table, (random.random(ROWS) < 1 / (1 + np.exp(-score))).astype(int)


def evaluate(parameters):
    """Print the ten columns that gain most; return the AUC on rows that were not trained with."""
    table, labels = clicks()
    training = {name: column[:TRAINING] for name, column in table.items()}
    test = {name: column[TRAINING:] for name, column in table.items()}
    generator = FeatureGenerator(chosen_features(SPECIFICATION, parameters))
    names = np.array([*table, *generator.get_feature_names_out()])
    rows = np.column_stack([*training.values()])
    test_rows = np.column_stack([*test.values()])
    if generator.features:
        rows = np.hstack([rows, generator.fit_transform(training, labels[:TRAINING])])
        test_rows = np.hstack([test_rows, generator.transform(test)])

    topk = min(MOST_COLUMNS, len(names))
    selector = GBDTSelector(BOOSTING, 0.2, 10, "gain", ROUNDS, topk=topk, random_state=0)
    rows = selector.fit_transform(rows, labels[:TRAINING])
    names = names[selector.get_support()]
    model = lightgbm.train(BOOSTING, lightgbm.Dataset(rows, labels[:TRAINING]), ROUNDS)
    gains = model.feature_importance("gain")
    print("columns that gain most:", *names[np.argsort(-gains)][:10])
    return float(roc_auc_score(labels[TRAINING:], model.predict(selector.transform(test_rows))))


if __name__ == "__main__":
    nni.report_final_result(evaluate(nni.get_next_parameter()))

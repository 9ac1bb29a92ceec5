"""Compare selectors of columns, each before a logistic regression: accuracy, time and memory."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

from sklearn.datasets import load_svmlight_file, make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from nni.feature_engineering import FeatureGradientSelector, GBDTSelector

HEADER = "data                selector       columns  informative  accuracy  seconds    MiB"
COLUMNS = 20
"""Kept by each selector that is given how many."""
SEED = 0
INFORMATIVE = 20
"""The first columns of the generated tables; all others are noise."""


def generated(rows, columns):
    return make_classification(
        rows,
        columns,
        n_informative=20,
        n_redundant=0,
        class_sep=2.0,
        shuffle=False,
        random_state=SEED,
    )


def gbdt():
    trees = {"objective": "binary", "num_threads": 1}
    return GBDTSelector(trees, 0.1, 10, "gain", 100, topk=COLUMNS, random_state=SEED)


def extra_trees():
    return SelectFromModel(ExtraTreesClassifier(50, random_state=SEED))


SELECTORS = {
    "all columns": lambda: None,
    "gradient": lambda: FeatureGradientSelector(n_features=COLUMNS, random_state=SEED),
    "GBDT": gbdt,
    "extra trees": extra_trees,
}
DATA = {
    "2000 x 500": lambda: generated(2000, 500),
    "62 x 2000": lambda: generated(62, 2000),
}


def load(data):
    """Return the table and the labels of a generated set, or of a file in LIBSVM's format."""
    if data in DATA:
        return DATA[data]()
    table, labels = load_svmlight_file(data)
    return table, (labels > labels.min()).astype(int)


def measure(data, selector):
    """Return a line: accuracy on a tenth of the rows, CPU seconds, MiB above the table."""
    table, labels = load(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parts = train_test_split(table, labels, test_size=0.1, random_state=SEED, stratify=labels)
    rows, test_rows, classes, test_classes = parts
    steps = [SELECTORS[selector](), LogisticRegression(max_iter=1000)]
    pipeline = make_pipeline(*(step for step in steps if step is not None))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a regression that has not converged is part of the table
        pipeline.fit(rows, classes)
    seconds = time.process_time() - began
    kept = pipeline[0].get_support(indices=True) if len(pipeline) > 1 else range(rows.shape[1])
    found = sum(column < INFORMATIVE for column in kept) if data in DATA else "-"
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    accuracy = pipeline.score(test_rows, test_classes)
    name = Path(data).name
    numbers = f"{len(kept):>9}{found:>13}{accuracy:>10.4f}{seconds:>9.2f}{memory:>7.0f}"
    return f"{name:<20}{selector:<13}{numbers}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="of files in LIBSVM's format")
    parser.add_argument("--one-process", action="store_true", help="faster, memory is not exact")
    parser.add_argument("--data", help="one set only")
    parser.add_argument("--selector", choices=SELECTORS, help="one selector only")
    options = parser.parse_args()
    if options.data and options.selector:
        print(measure(options.data, options.selector), flush=True)
        return

    sets = [options.data] if options.data else list(DATA)
    if options.folder:
        sets = [str(file) for file in sorted(options.folder.iterdir()) if file.is_file()]
    print(HEADER, flush=True)
    for data in sets:
        for selector in [options.selector] if options.selector else SELECTORS:
            if options.one_process:
                print(measure(data, selector), flush=True)
            else:  # the peak of memory is that of a process
                command = [sys.executable, __file__, "--data", data, "--selector", selector]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()

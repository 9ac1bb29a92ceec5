"""Search the settings of a pipeline of scikit-learn, twice: with all samples, and by halving."""

import sys
import time

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from nni.hpo import LogUniform, RandInt
from nni.integrations import NNISearchCV


def main(n_iter=27):
    images, labels = load_digits(return_X_y=True)
    images, test_images, labels, test_labels = train_test_split(images, labels, random_state=0)
    space = {
        "pca__n_components": RandInt(4, 48),
        "svc__C": LogUniform(0.01, 1000),
        "svc__gamma": LogUniform(1e-6, 0.1),
    }
    for resource in (None, "n_samples"):
        search = NNISearchCV(
            make_pipeline(PCA(random_state=0), SVC()),
            space,
            n_iter=n_iter,
            tuner="TPE",
            resource=resource,
            cv=3,
            random_state=0,
        )
        started = time.monotonic()
        search.fit(images, labels)
        score = search.score(test_images, test_labels)
        print(
            f"{resource or 'all samples'}: {score:.3f} on the test, "
            f"{len(search.cv_results_['params'])} evaluations, "
            f"{time.monotonic() - started:.1f} s, {search.best_params_}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

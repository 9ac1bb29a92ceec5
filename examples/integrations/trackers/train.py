"""Trial: logistic regression on digits, which a tracker follows.

Alone it trains with the defaults below; `nnictl create --config config.yml` tunes them.
"""

import sys
from pathlib import Path

import numpy
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

import nni


def track(tracker):
    """Connect this trial with a tracker; nothing of them needs a network."""
    outputs = Path("weights.npy").absolute()
    if tracker == "mlflow":
        from nni.integrations import report_to_mlflow

        return report_to_mlflow("digits", tracking_uri="sqlite:///runs.db", outputs=outputs)
    if tracker == "wandb":
        from nni.integrations import report_to_wandb

        return report_to_wandb("digits", offline=True, outputs=outputs)
    from nni.integrations import report_to_tensorboard

    return report_to_tensorboard()


def main(tracker="tensorboard", epochs=5):
    images, labels = load_digits(return_X_y=True)
    with track(tracker):
        parameters = {"alpha": 1e-3, **nni.get_next_parameter()}
        model = SGDClassifier(loss="log_loss", alpha=parameters["alpha"], random_state=0)
        for _ in range(int(epochs)):
            model.partial_fit(images[:1200] / 16, labels[:1200], classes=range(10))
            accuracy = model.score(images[1200:] / 16, labels[1200:])
            nni.report_intermediate_result(accuracy)
        numpy.save("weights.npy", model.coef_)
        nni.report_final_result(accuracy)


if __name__ == "__main__":
    main(*sys.argv[1:])

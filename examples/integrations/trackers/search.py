"""Search in one process, each trial of which is a run of a tracker."""

import sys

import numpy
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from nni.hpo import LogUniform, optimize


def callback_of(tracker):
    """Return what sends the trials to a tracker; nothing of them needs a network."""
    if tracker == "mlflow":
        from nni.integrations import MlflowCallback

        return MlflowCallback("digits", tracking_uri="sqlite:///runs.db", outputs=weights_of)
    if tracker == "wandb":
        from nni.integrations import WandbCallback

        return WandbCallback("digits", offline=True, outputs=weights_of)
    from nni.integrations import TensorBoardCallback

    return TensorBoardCallback()


def weights_of(record):
    return record.user_attrs.get("weights")


def train(parameters, trial):
    images, labels = load_digits(return_X_y=True)
    model = SGDClassifier(loss="log_loss", alpha=parameters["alpha"], random_state=0)
    for _ in range(5):
        model.partial_fit(images[:1200] / 16, labels[:1200], classes=range(10))
        accuracy = model.score(images[1200:] / 16, labels[1200:])
        trial.report(accuracy)
    numpy.save(f"weights-{trial.id}.npy", model.coef_)
    trial.set_user_attr("weights", f"weights-{trial.id}.npy")
    return accuracy


def main(tracker="tensorboard", trials=10):
    found = optimize(
        train,
        {"alpha": LogUniform(1e-5, 1)},
        tuner="TPE",
        trials=int(trials),
        optimize_mode="maximize",
        seed=0,
        callbacks=[callback_of(tracker)],
    )
    print(f"best of {len(found.trials)} runs: {found.best_value:.4f} at {found.best_parameters}")


if __name__ == "__main__":
    main(*sys.argv[1:])

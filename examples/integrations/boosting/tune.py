"""Tune boosted trees for digits: each iteration is reported, and bad trials end early."""

import sys

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nni.hpo import LogUniform, MedianstopAssessor, RandInt, optimize

SPACE = {"learning_rate": LogUniform(0.01, 1), "max_depth": RandInt(2, 8)}


def lightgbm_loss(parameters, trial, data, iterations):
    import lightgbm

    from nni.integrations import LightGBMCallback

    training_x, test_x, training_y, test_y = data
    training = lightgbm.Dataset(training_x, training_y)
    callback = LightGBMCallback("multi_logloss", trial=trial, final="min")
    settings = {"objective": "multiclass", "num_class": 10, "verbose": -1, "num_threads": 1}
    lightgbm.train(
        {**settings, **parameters},
        training,
        iterations,
        valid_sets=[lightgbm.Dataset(test_x, test_y, reference=training)],
        callbacks=[callback],
    )
    return callback.result


def xgboost_loss(parameters, trial, data, iterations):
    import xgboost

    from nni.integrations import XGBoostCallback

    training_x, test_x, training_y, test_y = data
    callback = XGBoostCallback("mlogloss", trial=trial, final="min")
    settings = {"objective": "multi:softprob", "num_class": 10, "nthread": 1}
    xgboost.train(
        {**settings, **parameters},
        xgboost.DMatrix(training_x, training_y),
        iterations,
        evals=[(xgboost.DMatrix(test_x, test_y), "validation")],
        verbose_eval=False,
        callbacks=[callback],
    )
    return callback.result


def catboost_loss(parameters, trial, data, iterations):
    import catboost

    from nni.integrations import CatBoostCallback

    training_x, test_x, training_y, test_y = data
    callback = CatBoostCallback("validation-MultiClass", trial=trial, final="min")
    model = catboost.CatBoostClassifier(
        iterations=iterations, thread_count=1, allow_writing_files=False, **parameters
    )
    test = (test_x, test_y)
    model.fit(training_x, training_y, eval_set=test, callbacks=[callback], verbose=False)
    return callback.result


LOSSES = {"lightgbm": lightgbm_loss, "xgboost": xgboost_loss, "catboost": catboost_loss}


def main(library="lightgbm", trials=10, iterations=20):
    data = train_test_split(*load_digits(return_X_y=True), random_state=0)
    found = optimize(
        lambda parameters, trial: LOSSES[library](parameters, trial, data, int(iterations)),
        SPACE,
        tuner="TPE",
        assessor=MedianstopAssessor("minimize", start_step=5),
        trials=int(trials),
        seed=0,
    )
    for record in found.trials:
        shown = record.status if record.value is None else f"{record.value:.3f}"
        print(f"{record.id}: {shown} after {len(record.intermediate)} iterations")
    print(f"best loss {found.best_value:.3f} with {found.best_parameters}")


if __name__ == "__main__":
    main(*sys.argv[1:])

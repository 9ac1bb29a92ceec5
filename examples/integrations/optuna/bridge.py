"""One problem, three searches: a tuner of NNI, a sampler of Optuna in NNI, and the reverse."""

import sys

import optuna

from nni.hpo import LogUniform, RandInt, optimize
from nni.integrations import NNISampler, OptunaTuner, optuna_samples, optuna_search_space, to_optuna

SPACE = {"rate": LogUniform(1e-4, 1), "depth": RandInt(1, 12)}


def loss(rate, depth):
    return (rate / 0.03 - 1) ** 2 / 10 + (depth - 7) ** 2


def optuna_objective(trial):
    rate = trial.suggest_float("rate", 1e-4, 1, log=True)
    return loss(rate, trial.suggest_int("depth", 1, 11))


def main(trials=30):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for name, tuner in (("TPE", "TPE"), ("TPESampler", OptunaTuner("TPESampler", seed=0))):
        found = optimize(lambda p: loss(**p), SPACE, tuner=tuner, trials=trials, seed=0)
        print(f"{name} in NNI: {found.best_value:.4f}")

    study = optuna.create_study(sampler=NNISampler("TPE", seed=0))
    study.optimize(optuna_objective, n_trials=trials)
    print(f"TPE of NNI in Optuna: {study.best_value:.4f}")

    # The trials of Optuna begin a search of NNI, whose result becomes a study of Optuna again.
    space = optuna_search_space(study)
    more = optimize(
        lambda p: loss(**p), space, trials=trials, warm_start_from=optuna_samples(study), seed=0
    )
    both = to_optuna(more, space, study=study)
    print(f"both, {len(both.trials)} trials: {both.best_value:.4f} at {both.best_params}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

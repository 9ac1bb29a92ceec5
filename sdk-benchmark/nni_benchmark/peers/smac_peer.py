"""SMAC 3 as its documentation starts with it: the facade for hyperparameters, random forest."""

from __future__ import annotations

import logging
import tempfile
import warnings
from dataclasses import dataclass

from nni.hpo.space.configspace import parameters_of, to_configspace
from nni_benchmark.problem import Evaluation, Problem
from nni_benchmark.searcher import single_objective


@dataclass(frozen=True, slots=True)
class SmacSearcher:
    """`HyperparameterOptimizationFacade`, asked and told."""

    name: str = "smac"
    packages: tuple[str, ...] = ("smac", "ConfigSpace")

    def takes(self, problem: Problem) -> bool:
        """See `Searcher`; a product of parameters is no forbidden clause of its spaces."""
        return single_objective(problem) and not problem.kinds & {"constrained", "limited"}

    def search(self, evaluation: Evaluation) -> None:
        """See `Searcher`."""
        import smac
        from smac.runhistory.dataclasses import TrialValue

        logging.getLogger("smac").setLevel(logging.ERROR)
        space = evaluation.problem.space
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scenario = smac.Scenario(
                to_configspace(space, seed=evaluation.seed),
                deterministic=True,
                n_trials=evaluation.trials,
                seed=evaluation.seed,
                output_directory=folder,
            )
            facade = smac.HyperparameterOptimizationFacade(
                scenario, lambda _, seed: float(seed), overwrite=True, logging_level=False
            )
            while evaluation.left:
                trial = facade.ask()
                outcome = evaluation(parameters_of(space, trial.config))
                assert outcome.losses is not None  # it takes no space with constraints
                facade.tell(trial, TrialValue(cost=outcome.losses[0]))

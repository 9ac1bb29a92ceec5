"""Adapter of SMAC 3: its default facade, a random forest."""

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
    """Searcher by SMAC's `HyperparameterOptimizationFacade`, for one objective without limits."""

    name: str = "smac"
    packages: tuple[str, ...] = ("smac", "ConfigSpace")

    def takes(self, problem: Problem) -> bool:
        """Return whether a problem has one objective, and no limits on parameters or outcomes."""
        return single_objective(problem) and not problem.kinds & {"constrained", "limited"}

    def search(self, evaluation: Evaluation) -> None:
        """Run SMAC by ask and tell until the trials are used up; the evaluation keeps regrets."""
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
                assert outcome.losses is not None  # spaces with constraints are unsupported
                facade.tell(trial, TrialValue(cost=outcome.losses[0]))

"""Hyperparameter optimisation: tuners, assessors, advisors, and search loops in one process.

Names are imported on first use, so that `import nni.hpo` loads no other module.

The imports below, for type checkers, are the one list of the exports. `./dev algorithms` adds the
classes that are declared as algorithms, and writes `_HOMES` and `__all__` from it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nni.errors import NoMoreTrialError, TrialPruned
    from nni.hpo.advisor import MsgDispatcherBase
    from nni.hpo.advisors.asha import ASHA
    from nni.hpo.advisors.bohb import BOHB
    from nni.hpo.advisors.hyperband import Hyperband
    from nni.hpo.advisors.moasha import MOASHA
    from nni.hpo.assessors.curve_fitting import CurvefittingAssessor
    from nni.hpo.assessors.median_stop import MedianstopAssessor
    from nni.hpo.base import DEFERRED, Assessor, AssessResult, Tuner
    from nni.hpo.commands import CommandType, MetricType
    from nni.hpo.importance import Importances, importances
    from nni.hpo.objectives import Objective, Objectives
    from nni.hpo.pareto import pareto_front
    from nni.hpo.registry.declaration import algorithm
    from nni.hpo.registry.entries import AlgorithmEntry
    from nni.hpo.registry.validation import ClassArgsValidator
    from nni.hpo.search.define_by_run import DefineByRunStudy, DefineByRunTrial, FixedTrial
    from nni.hpo.search.evaluation import TrialRecord, TrialReporter
    from nni.hpo.search.optimization import OptimizeResult, optimize
    from nni.hpo.search.outcomes import FrontPoint, Recommendation, StudyTrial
    from nni.hpo.search.stopping_rules import NoImprovement, RegretBound, TargetReached
    from nni.hpo.search.study import Study
    from nni.hpo.simulation.curve_table import CurveTable, tabulate
    from nni.hpo.simulation.simulator import SimulatedRun, simulate
    from nni.hpo.space.samplings import (
        Choice,
        LogNormal,
        LogUniform,
        Normal,
        QLogNormal,
        QLogUniform,
        QNormal,
        QUniform,
        RandInt,
        Uniform,
    )
    from nni.hpo.space.typed_space import TypedSpace, configuration, search_space
    from nni.hpo.tuners.anneal import AnnealTuner
    from nni.hpo.tuners.auto import AutoTuner
    from nni.hpo.tuners.batch import BatchTuner
    from nni.hpo.tuners.cma_es import CmaEs
    from nni.hpo.tuners.dngo import DNGOTuner
    from nni.hpo.tuners.evolution import EvolutionTuner
    from nni.hpo.tuners.gp import GPTuner
    from nni.hpo.tuners.grid_search import GridSearchTuner
    from nni.hpo.tuners.hyperopt_tuner import HyperoptTuner
    from nni.hpo.tuners.metis import MetisTuner
    from nni.hpo.tuners.network_morphism.tuner import NetworkMorphismTuner
    from nni.hpo.tuners.nsga2 import NSGA2
    from nni.hpo.tuners.pbt import PBTTuner
    from nni.hpo.tuners.portfolio import PortfolioTuner
    from nni.hpo.tuners.random_search import RandomTuner
    from nni.hpo.tuners.smac import SMACTuner
    from nni.hpo.tuners.tpe import TPETuner

_HOMES = {
    "ASHA": "nni.hpo.advisors.asha",
    "AlgorithmEntry": "nni.hpo.registry.entries",
    "AnnealTuner": "nni.hpo.tuners.anneal",
    "AssessResult": "nni.hpo.base",
    "Assessor": "nni.hpo.base",
    "AutoTuner": "nni.hpo.tuners.auto",
    "BOHB": "nni.hpo.advisors.bohb",
    "BatchTuner": "nni.hpo.tuners.batch",
    "Choice": "nni.hpo.space.samplings",
    "ClassArgsValidator": "nni.hpo.registry.validation",
    "CmaEs": "nni.hpo.tuners.cma_es",
    "CommandType": "nni.hpo.commands",
    "CurveTable": "nni.hpo.simulation.curve_table",
    "CurvefittingAssessor": "nni.hpo.assessors.curve_fitting",
    "DEFERRED": "nni.hpo.base",
    "DNGOTuner": "nni.hpo.tuners.dngo",
    "DefineByRunStudy": "nni.hpo.search.define_by_run",
    "DefineByRunTrial": "nni.hpo.search.define_by_run",
    "EvolutionTuner": "nni.hpo.tuners.evolution",
    "FixedTrial": "nni.hpo.search.define_by_run",
    "FrontPoint": "nni.hpo.search.outcomes",
    "GPTuner": "nni.hpo.tuners.gp",
    "GridSearchTuner": "nni.hpo.tuners.grid_search",
    "Hyperband": "nni.hpo.advisors.hyperband",
    "HyperoptTuner": "nni.hpo.tuners.hyperopt_tuner",
    "Importances": "nni.hpo.importance",
    "LogNormal": "nni.hpo.space.samplings",
    "LogUniform": "nni.hpo.space.samplings",
    "MOASHA": "nni.hpo.advisors.moasha",
    "MedianstopAssessor": "nni.hpo.assessors.median_stop",
    "MetisTuner": "nni.hpo.tuners.metis",
    "MetricType": "nni.hpo.commands",
    "MsgDispatcherBase": "nni.hpo.advisor",
    "NSGA2": "nni.hpo.tuners.nsga2",
    "NetworkMorphismTuner": "nni.hpo.tuners.network_morphism.tuner",
    "NoImprovement": "nni.hpo.search.stopping_rules",
    "NoMoreTrialError": "nni.errors",
    "Normal": "nni.hpo.space.samplings",
    "Objective": "nni.hpo.objectives",
    "Objectives": "nni.hpo.objectives",
    "OptimizeResult": "nni.hpo.search.optimization",
    "PBTTuner": "nni.hpo.tuners.pbt",
    "PortfolioTuner": "nni.hpo.tuners.portfolio",
    "QLogNormal": "nni.hpo.space.samplings",
    "QLogUniform": "nni.hpo.space.samplings",
    "QNormal": "nni.hpo.space.samplings",
    "QUniform": "nni.hpo.space.samplings",
    "RandInt": "nni.hpo.space.samplings",
    "RandomTuner": "nni.hpo.tuners.random_search",
    "Recommendation": "nni.hpo.search.outcomes",
    "RegretBound": "nni.hpo.search.stopping_rules",
    "SMACTuner": "nni.hpo.tuners.smac",
    "SimulatedRun": "nni.hpo.simulation.simulator",
    "Study": "nni.hpo.search.study",
    "StudyTrial": "nni.hpo.search.outcomes",
    "TPETuner": "nni.hpo.tuners.tpe",
    "TargetReached": "nni.hpo.search.stopping_rules",
    "TrialPruned": "nni.errors",
    "TrialRecord": "nni.hpo.search.evaluation",
    "TrialReporter": "nni.hpo.search.evaluation",
    "Tuner": "nni.hpo.base",
    "TypedSpace": "nni.hpo.space.typed_space",
    "Uniform": "nni.hpo.space.samplings",
    "algorithm": "nni.hpo.registry.declaration",
    "configuration": "nni.hpo.space.typed_space",
    "importances": "nni.hpo.importance",
    "optimize": "nni.hpo.search.optimization",
    "pareto_front": "nni.hpo.pareto",
    "search_space": "nni.hpo.space.typed_space",
    "simulate": "nni.hpo.simulation.simulator",
    "tabulate": "nni.hpo.simulation.curve_table",
}

__all__ = [
    "ASHA",
    "BOHB",
    "DEFERRED",
    "MOASHA",
    "NSGA2",
    "AlgorithmEntry",
    "AnnealTuner",
    "AssessResult",
    "Assessor",
    "AutoTuner",
    "BatchTuner",
    "Choice",
    "ClassArgsValidator",
    "CmaEs",
    "CommandType",
    "CurveTable",
    "CurvefittingAssessor",
    "DNGOTuner",
    "DefineByRunStudy",
    "DefineByRunTrial",
    "EvolutionTuner",
    "FixedTrial",
    "FrontPoint",
    "GPTuner",
    "GridSearchTuner",
    "Hyperband",
    "HyperoptTuner",
    "Importances",
    "LogNormal",
    "LogUniform",
    "MedianstopAssessor",
    "MetisTuner",
    "MetricType",
    "MsgDispatcherBase",
    "NetworkMorphismTuner",
    "NoImprovement",
    "NoMoreTrialError",
    "Normal",
    "Objective",
    "Objectives",
    "OptimizeResult",
    "PBTTuner",
    "PortfolioTuner",
    "QLogNormal",
    "QLogUniform",
    "QNormal",
    "QUniform",
    "RandInt",
    "RandomTuner",
    "Recommendation",
    "RegretBound",
    "SMACTuner",
    "SimulatedRun",
    "Study",
    "StudyTrial",
    "TPETuner",
    "TargetReached",
    "TrialPruned",
    "TrialRecord",
    "TrialReporter",
    "Tuner",
    "TypedSpace",
    "Uniform",
    "algorithm",
    "configuration",
    "importances",
    "optimize",
    "pareto_front",
    "search_space",
    "simulate",
    "tabulate",
]

_OF_EXTRA = ("numpy", "threadpoolctl")
"""Packages of the extra `hpo`."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - exports of many types
    """Import and return an exported name on its first use; name the extra if it is missing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(home), name)
    except ImportError as error:
        if error.name not in _OF_EXTRA:
            raise
        raise ImportError(
            f"nni.hpo.{name} needs {error.name}; run: pip install 'nni[hpo]'", name=error.name
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of all exports and of what the module has loaded, sorted."""
    return sorted({*globals(), *_HOMES})

"""Hyperparameter optimisation: tuners, assessors, advisors, and loops that run them in-process.

Names are imported when first used, so that `import nni.hpo` costs nothing but this file.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nni.errors import NoMoreTrialError
    from nni.hpo.advisor import MsgDispatcherBase
    from nni.hpo.advisors.bohb import BOHB
    from nni.hpo.advisors.hyperband import Hyperband
    from nni.hpo.assessors.curve_fitting import CurvefittingAssessor
    from nni.hpo.assessors.median_stop import MedianstopAssessor
    from nni.hpo.base import DEFERRED, Assessor, AssessResult, Tuner
    from nni.hpo.commands import CommandType, MetricType
    from nni.hpo.entries import AlgorithmEntry
    from nni.hpo.optimization import OptimizeResult, TrialRecord, optimize
    from nni.hpo.samplings import (
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
    from nni.hpo.study import Study, StudyTrial
    from nni.hpo.tuners.anneal import AnnealTuner
    from nni.hpo.tuners.batch import BatchTuner
    from nni.hpo.tuners.dngo import DNGOTuner
    from nni.hpo.tuners.evolution import EvolutionTuner
    from nni.hpo.tuners.gp import GPTuner
    from nni.hpo.tuners.grid_search import GridSearchTuner
    from nni.hpo.tuners.hyperopt_tuner import HyperoptTuner
    from nni.hpo.tuners.metis import MetisTuner
    from nni.hpo.tuners.pbt import PBTTuner
    from nni.hpo.tuners.random_search import RandomTuner
    from nni.hpo.tuners.smac import SMACTuner
    from nni.hpo.tuners.tpe import TPETuner
    from nni.hpo.typed_space import TypedSpace, configuration, search_space
    from nni.hpo.validation import ClassArgsValidator

_HOMES = {
    "AlgorithmEntry": "nni.hpo.entries",
    "AnnealTuner": "nni.hpo.tuners.anneal",
    "AssessResult": "nni.hpo.base",
    "Assessor": "nni.hpo.base",
    "BOHB": "nni.hpo.advisors.bohb",
    "BatchTuner": "nni.hpo.tuners.batch",
    "Choice": "nni.hpo.samplings",
    "ClassArgsValidator": "nni.hpo.validation",
    "CommandType": "nni.hpo.commands",
    "CurvefittingAssessor": "nni.hpo.assessors.curve_fitting",
    "DEFERRED": "nni.hpo.base",
    "DNGOTuner": "nni.hpo.tuners.dngo",
    "EvolutionTuner": "nni.hpo.tuners.evolution",
    "GPTuner": "nni.hpo.tuners.gp",
    "GridSearchTuner": "nni.hpo.tuners.grid_search",
    "Hyperband": "nni.hpo.advisors.hyperband",
    "HyperoptTuner": "nni.hpo.tuners.hyperopt_tuner",
    "LogNormal": "nni.hpo.samplings",
    "LogUniform": "nni.hpo.samplings",
    "MedianstopAssessor": "nni.hpo.assessors.median_stop",
    "MetisTuner": "nni.hpo.tuners.metis",
    "MetricType": "nni.hpo.commands",
    "MsgDispatcherBase": "nni.hpo.advisor",
    "NoMoreTrialError": "nni.errors",
    "Normal": "nni.hpo.samplings",
    "OptimizeResult": "nni.hpo.optimization",
    "PBTTuner": "nni.hpo.tuners.pbt",
    "QLogNormal": "nni.hpo.samplings",
    "QLogUniform": "nni.hpo.samplings",
    "QNormal": "nni.hpo.samplings",
    "QUniform": "nni.hpo.samplings",
    "RandInt": "nni.hpo.samplings",
    "RandomTuner": "nni.hpo.tuners.random_search",
    "SMACTuner": "nni.hpo.tuners.smac",
    "Study": "nni.hpo.study",
    "StudyTrial": "nni.hpo.study",
    "TPETuner": "nni.hpo.tuners.tpe",
    "TrialRecord": "nni.hpo.optimization",
    "Tuner": "nni.hpo.base",
    "TypedSpace": "nni.hpo.typed_space",
    "Uniform": "nni.hpo.samplings",
    "configuration": "nni.hpo.typed_space",
    "optimize": "nni.hpo.optimization",
    "search_space": "nni.hpo.typed_space",
}

__all__ = [
    "BOHB",
    "DEFERRED",
    "AlgorithmEntry",
    "AnnealTuner",
    "AssessResult",
    "Assessor",
    "BatchTuner",
    "Choice",
    "ClassArgsValidator",
    "CommandType",
    "CurvefittingAssessor",
    "DNGOTuner",
    "EvolutionTuner",
    "GPTuner",
    "GridSearchTuner",
    "Hyperband",
    "HyperoptTuner",
    "LogNormal",
    "LogUniform",
    "MedianstopAssessor",
    "MetisTuner",
    "MetricType",
    "MsgDispatcherBase",
    "NoMoreTrialError",
    "Normal",
    "OptimizeResult",
    "PBTTuner",
    "QLogNormal",
    "QLogUniform",
    "QNormal",
    "QUniform",
    "RandInt",
    "RandomTuner",
    "SMACTuner",
    "Study",
    "StudyTrial",
    "TPETuner",
    "TrialRecord",
    "Tuner",
    "TypedSpace",
    "Uniform",
    "configuration",
    "optimize",
    "search_space",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - exports of many types
    """Import and return an exported name on its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the exported names beside the loaded ones."""
    return sorted({*globals(), *_HOMES})

"""Evaluators with the arguments of NNI 2.x."""

from nni.retiarii.evaluator.legacy_functional import (
    LegacyFunctionalEvaluator as FunctionalEvaluator,
)

__all__ = ["FunctionalEvaluator"]

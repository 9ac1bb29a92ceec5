"""Mutables: what spaces are made of, be it of networks or of numbers; without torch."""

from nni.mutable.annotation import Constraint, ExpressionConstraint, MutableAnnotation
from nni.mutable.base import LabeledMutable, Mutable, RandomState, Sample
from nni.mutable.categorical import Categorical
from nni.mutable.categorical_multiple import CategoricalMultiple
from nni.mutable.containers import MutableDict, MutableList
from nni.mutable.errors import (
    ConstraintViolation,
    LegacyFormatError,
    SampleMissingError,
    SampleValidationError,
)
from nni.mutable.expression import MutableExpression
from nni.mutable.frozen import ensure_frozen, frozen_context, frozen_factory
from nni.mutable.labels import Label, auto_label, label_scope
from nni.mutable.numerical import Numerical
from nni.mutable.symbol import MutableSymbol

__all__ = [
    "Categorical",
    "CategoricalMultiple",
    "Constraint",
    "ConstraintViolation",
    "ExpressionConstraint",
    "Label",
    "LabeledMutable",
    "LegacyFormatError",
    "Mutable",
    "MutableAnnotation",
    "MutableDict",
    "MutableExpression",
    "MutableList",
    "MutableSymbol",
    "Numerical",
    "RandomState",
    "Sample",
    "SampleMissingError",
    "SampleValidationError",
    "auto_label",
    "ensure_frozen",
    "frozen_context",
    "frozen_factory",
    "label_scope",
]

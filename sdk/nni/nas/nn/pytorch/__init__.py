"""Primitives of model spaces in PyTorch."""

from nni.nas.nn.pytorch import mutable_layers
from nni.nas.nn.pytorch.anchor import MutationAnchor
from nni.nas.nn.pytorch.base import MutableModule, recursive_freeze
from nni.nas.nn.pytorch.cell import Cell
from nni.nas.nn.pytorch.choice import LayerChoice
from nni.nas.nn.pytorch.inputs import ChosenInputs, InputChoice, ReductionType
from nni.nas.nn.pytorch.model_space import ModelSpace
from nni.nas.nn.pytorch.mutable_layers import *  # noqa: F403 - a name for each class of torch
from nni.nas.nn.pytorch.parametrized import ParametrizedModule
from nni.nas.nn.pytorch.repeat import Repeat
from nni.nas.nn.pytorch.value_choice import ValueChoice

__all__ = [
    "Cell",
    "ChosenInputs",
    "InputChoice",
    "LayerChoice",
    "ModelSpace",
    "MutableModule",
    "MutationAnchor",
    "ParametrizedModule",
    "ReductionType",
    "Repeat",
    "ValueChoice",
    "recursive_freeze",
]
__all__ += mutable_layers.__all__

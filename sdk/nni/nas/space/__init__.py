"""Model spaces: spaces with their evaluator, their formats, states, metrics and mutators."""

from nni.nas.space.base import BaseModelSpace
from nni.nas.space.context import current_model, model_context
from nni.nas.space.executable import ExecutableModelSpace, ModelEvaluator
from nni.nas.space.graph import Edge, Graph, IllegalGraphError, Node
from nni.nas.space.graph_space import GraphModelSpace
from nni.nas.space.metrics import Metrics
from nni.nas.space.mutator import (
    InvalidMutation,
    Mutation,
    MutationSampler,
    Mutator,
    MutatorSequence,
    StationaryMutator,
)
from nni.nas.space.raw import RawFormatModelSpace
from nni.nas.space.simplified import SimplifiedModelSpace
from nni.nas.space.status import ModelStatus

__all__ = [
    "BaseModelSpace",
    "Edge",
    "ExecutableModelSpace",
    "Graph",
    "GraphModelSpace",
    "IllegalGraphError",
    "InvalidMutation",
    "Metrics",
    "ModelEvaluator",
    "ModelStatus",
    "Mutation",
    "MutationSampler",
    "Mutator",
    "MutatorSequence",
    "Node",
    "RawFormatModelSpace",
    "SimplifiedModelSpace",
    "StationaryMutator",
    "current_model",
    "model_context",
]

"""Architecture search with the names and arguments of NNI 2.x; `nni.nas` has the newer ones."""

from nni.nas.space import Edge, Graph, Node
from nni.nas.space import GraphModelSpace as Model
from nni.nas.space import MutationSampler as Sampler
from nni.nas.space.graph_op import Operation
from nni.nas.utils import basic_unit, serialize, serialize_cls
from nni.retiarii import debug_configs
from nni.retiarii.fixed_architecture import fixed_arch
from nni.retiarii.json_documents import json_dump, json_dumps, json_load, json_loads
from nni.retiarii.legacy_mutator import LegacyMutator as Mutator
from nni.retiarii.wrapped_models import model_wrapper

__all__ = [
    "Edge",
    "Graph",
    "Model",
    "Mutator",
    "Node",
    "Operation",
    "Sampler",
    "basic_unit",
    "debug_configs",
    "fixed_arch",
    "json_dump",
    "json_dumps",
    "json_load",
    "json_loads",
    "model_wrapper",
    "serialize",
    "serialize_cls",
]

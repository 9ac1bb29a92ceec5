"""Architecture search with the names and arguments of NNI 2.x; `nni.nas` has the newer ones."""

from nni.nas.utils import basic_unit, serialize, serialize_cls
from nni.retiarii.fixed_architecture import fixed_arch
from nni.retiarii.json_documents import json_dump, json_dumps, json_load, json_loads
from nni.retiarii.unavailable import refuse
from nni.retiarii.wrapped_models import model_wrapper

__all__ = [
    "basic_unit",
    "fixed_arch",
    "json_dump",
    "json_dumps",
    "json_load",
    "json_loads",
    "model_wrapper",
    "serialize",
    "serialize_cls",
]

_GRAPHS = "a network with the choices of nni.nas.nn.pytorch: graphs are not available"

__getattr__ = refuse(
    __name__,
    dict.fromkeys(("Edge", "Graph", "Model", "Mutator", "Node", "Operation", "Sampler"), _GRAPHS),
)

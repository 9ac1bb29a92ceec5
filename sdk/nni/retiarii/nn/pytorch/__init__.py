"""Primitives of model spaces, and layers of torch, under the names of NNI 2.x."""

from nni.nas.hub.pytorch.modules import AutoActivation, NasBench101Cell, NasBench201Cell
from nni.nas.nn.pytorch import ChosenInputs, layers
from nni.retiarii.nn.pytorch.choices import LegacyInputChoice as InputChoice
from nni.retiarii.nn.pytorch.choices import LegacyLayerChoice as LayerChoice
from nni.retiarii.nn.pytorch.choices import LegacyValueChoice as ValueChoice
from nni.retiarii.nn.pytorch.choices import placeholder as Placeholder
from nni.retiarii.nn.pytorch.legacy_cells import LegacyCell as Cell
from nni.retiarii.nn.pytorch.legacy_cells import LegacyRepeat as Repeat

__all__ = [
    "AutoActivation",
    "Cell",
    "ChosenInputs",
    "InputChoice",
    "LayerChoice",
    "NasBench101Cell",
    "NasBench201Cell",
    "Placeholder",
    "Repeat",
    "ValueChoice",
]


def __getattr__(name: str) -> object:
    """Return a layer of torch whose arguments may be mutables."""
    return getattr(layers, name)

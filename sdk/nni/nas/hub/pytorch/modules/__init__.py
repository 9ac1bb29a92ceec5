"""Hypermodules: modules that contain a search space of their own."""

from nni.nas.hub.pytorch.modules.auto_activation import AutoActivation
from nni.nas.hub.pytorch.modules.nasbench101_cell import NasBench101Cell
from nni.nas.hub.pytorch.modules.nasbench201_cell import NasBench201Cell

__all__ = ["AutoActivation", "NasBench101Cell", "NasBench201Cell"]

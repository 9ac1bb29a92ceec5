"""Model spaces in PyTorch that are ready to search."""

from nni.nas.hub.pytorch.autoformer import AutoFormer, AutoformerSpace
from nni.nas.hub.pytorch.cell_spaces import DARTS, ENAS, PNAS, AmoebaNet, NASNet
from nni.nas.hub.pytorch.mobilenetv3 import MobileNetV3Space
from nni.nas.hub.pytorch.nasbench101 import NasBench101
from nni.nas.hub.pytorch.nasbench201 import NasBench201
from nni.nas.hub.pytorch.nds import NDS
from nni.nas.hub.pytorch.proxylessnas import ProxylessNAS
from nni.nas.hub.pytorch.shufflenet import ShuffleNetSpace

__all__ = [
    "DARTS",
    "ENAS",
    "NDS",
    "PNAS",
    "AmoebaNet",
    "AutoFormer",
    "AutoformerSpace",
    "MobileNetV3Space",
    "NASNet",
    "NasBench101",
    "NasBench201",
    "ProxylessNAS",
    "ShuffleNetSpace",
]

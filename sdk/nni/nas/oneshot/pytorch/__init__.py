"""Super-modules, training and penalties of one-shot search with PyTorch."""

from nni.nas.oneshot.pytorch.architecture import (
    ArchitectureWeights,
    GumbelWeights,
    SampledPath,
)
from nni.nas.oneshot.pytorch.controller import Controller
from nni.nas.oneshot.pytorch.differentiable_training import DifferentiableLightningModule
from nni.nas.oneshot.pytorch.layer_slicing import LayerSlicing
from nni.nas.oneshot.pytorch.policy_training import PolicyLightningModule
from nni.nas.oneshot.pytorch.recalibration import BatchNormRecalibration, recalibrate_batch_norm
from nni.nas.oneshot.pytorch.sampling_training import SamplingLightningModule
from nni.nas.oneshot.pytorch.slicing_registry import register_layer_slicing, slicing_of
from nni.nas.oneshot.pytorch.supernet import MutationHook, SuperModule, is_supernet
from nni.nas.oneshot.pytorch.training import (
    BaseOneShotLightningModule,
    ManualOneShotLightningModule,
)

__all__ = [
    "ArchitectureWeights",
    "BaseOneShotLightningModule",
    "BatchNormRecalibration",
    "Controller",
    "DifferentiableLightningModule",
    "GumbelWeights",
    "LayerSlicing",
    "ManualOneShotLightningModule",
    "MutationHook",
    "PolicyLightningModule",
    "SampledPath",
    "SamplingLightningModule",
    "SuperModule",
    "is_supernet",
    "recalibrate_batch_norm",
    "register_layer_slicing",
    "slicing_of",
]

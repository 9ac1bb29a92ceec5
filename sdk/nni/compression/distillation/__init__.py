"""Knowledge distillation: train a student to give the outputs of a teacher."""

from nni.compression.distillation.adaptive_distiller import Adaptive1dLayerwiseDistiller
from nni.compression.distillation.distiller import Distiller
from nni.compression.distillation.dynamic_distiller import DynamicLayerwiseDistiller
from nni.compression.distillation.losses import DistillKL, kd_loss

__all__ = [
    "Adaptive1dLayerwiseDistiller",
    "DistillKL",
    "Distiller",
    "DynamicLayerwiseDistiller",
    "kd_loss",
]

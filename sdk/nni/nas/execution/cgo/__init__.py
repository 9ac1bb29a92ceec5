"""Cross-graph optimisation: several models are trained in one trial, on the same batches."""

from nni.nas.execution.cgo.cross_graph import CrossGraphOptimization
from nni.nas.execution.cgo.grouping import grouped
from nni.nas.execution.cgo.merging import merged_model
from nni.nas.execution.cgo.multi_model import MultiModelLightningModule, MultiModelTrainer

__all__ = [
    "CrossGraphOptimization",
    "MultiModelLightningModule",
    "MultiModelTrainer",
    "grouped",
    "merged_model",
]

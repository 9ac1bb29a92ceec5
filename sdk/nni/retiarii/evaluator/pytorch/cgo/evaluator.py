"""Evaluators of NNI 2.x for several models in one trial."""

from nni.retiarii.evaluator.pytorch.cgo.multi_model_tasks import (
    LegacyMultiModelClassification as Classification,
)
from nni.retiarii.evaluator.pytorch.cgo.multi_model_tasks import (
    LegacyMultiModelModule as MultiModelSupervisedLearningModule,
)
from nni.retiarii.evaluator.pytorch.cgo.multi_model_tasks import (
    LegacyMultiModelRegression as Regression,
)

__all__ = ["Classification", "MultiModelSupervisedLearningModule", "Regression"]

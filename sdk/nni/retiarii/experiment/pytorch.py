"""Experiments of NNI 2.x."""

from nni.retiarii.experiment.execution_config import RetiariiExeConfig
from nni.retiarii.experiment.local_debugging import debug_mutated_model
from nni.retiarii.experiment.retiarii_experiment import RetiariiExperiment

__all__ = ["RetiariiExeConfig", "RetiariiExperiment", "debug_mutated_model"]

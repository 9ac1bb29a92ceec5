"""One-shot trainers of NNI 2.x, and parts for trainers of the user's own."""

from nni.retiarii.oneshot.pytorch.fbnet import FBNetTrainer, LookUpTable, NASConfig
from nni.retiarii.oneshot.pytorch.gradient_trainers import DartsTrainer, ProxylessTrainer
from nni.retiarii.oneshot.pytorch.proxyless_nas_trainer import ProxylessNasTrainer
from nni.retiarii.oneshot.pytorch.replacement import replace_input_choice, replace_layer_choice
from nni.retiarii.oneshot.pytorch.sampling_trainers import EnasTrainer, SinglePathTrainer
from nni.retiarii.oneshot.pytorch.sampling_trainers import SinglePathTrainer as RandomTrainer

__all__ = [
    "DartsTrainer",
    "EnasTrainer",
    "FBNetTrainer",
    "LookUpTable",
    "NASConfig",
    "ProxylessNasTrainer",
    "ProxylessTrainer",
    "RandomTrainer",
    "SinglePathTrainer",
    "replace_input_choice",
    "replace_layer_choice",
]

"""One-shot trainers of NNI 2.x."""

from nni.retiarii.oneshot.base_trainer import BaseOneShotTrainer

__all__ = ["BaseOneShotTrainer"]

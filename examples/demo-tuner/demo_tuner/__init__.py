"""A tuner in a package of its own: a random walk that goes on from the best point."""

from demo_tuner.tuner import DemoTuner
from demo_tuner.validator import MyClassArgsValidator

__all__ = ["DemoTuner", "MyClassArgsValidator"]

"""Neural architecture search: spaces, evaluators, strategies and experiments.

Each has a package of its own; this one exports the context in which a found network is built.
"""

from nni.nas.space.context import model_context

__all__ = ["model_context"]

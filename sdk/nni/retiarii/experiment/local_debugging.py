"""One model of a search, evaluated in this process: `debug_mutated_model`."""

from collections.abc import Sequence
from typing import Any

from nni.nas.execution import SequentialExecutionEngine
from nni.nas.space import ExecutableModelSpace, RawFormatModelSpace
from nni.nas.strategy import Random
from nni.retiarii.deprecation import warn_once
from nni.retiarii.experiment.mutated_space import mutated_space


def debug_mutated_model(
    base_model: Any,  # noqa: ANN401 - a network of any framework
    trainer: Any,  # noqa: ANN401 - anything with `evaluate`
    applied_mutators: Sequence[Any] = (),
) -> None:
    """Evaluate one random model in this process.

    Args:
        base_model: network with its choices.
        trainer: evaluator.
        applied_mutators: mutators; none with choices inside the network.

    Raises:
        RuntimeError: there are mutators and choices inside the network.
    """
    warn_once("experiment.pytorch.debug_mutated_model", "nni.nas.execution")
    engine = SequentialExecutionEngine(max_model_count=1)
    space: ExecutableModelSpace = (
        mutated_space(base_model, applied_mutators).with_evaluator(trainer)
        if applied_mutators
        else RawFormatModelSpace.from_model(base_model, trainer)
    )
    Random()(space, engine)

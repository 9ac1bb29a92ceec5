"""One model of a search, evaluated in this process: `debug_mutated_model`."""

from collections.abc import Sequence
from typing import Any

from nni.nas.execution import SequentialExecutionEngine
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy import Random
from nni.retiarii.deprecation import warn_once


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
        ValueError: there are mutators.
    """
    warn_once("experiment.pytorch.debug_mutated_model", "nni.nas.execution")
    if applied_mutators:
        raise ValueError(
            "applied_mutators must be empty: write the choices inside the network, by the layers "
            f"of nni.retiarii.nn.pytorch; got {list(applied_mutators)!r:.200}"
        )
    engine = SequentialExecutionEngine(max_model_count=1)
    Random()(RawFormatModelSpace.from_model(base_model, trainer), engine)

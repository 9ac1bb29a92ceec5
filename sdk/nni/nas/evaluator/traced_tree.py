"""Tree of recorded calls: an evaluator, its arguments, the arguments of these, and so on.

Mutables among the arguments are dimensions of the search. All functions are pure.
"""

from collections.abc import Iterator
from typing import Any

from nni.common.serializer import SerializableObject, is_traceable
from nni.mutable import Mutable, Sample

_ROOT = ""


def mutables_in(call: Any, path: str = _ROOT) -> Iterator[tuple[str, Mutable]]:  # noqa: ANN401 - a traced object
    """Yield path and object of each mutable in a call's arguments, nested ones included.

    Args:
        call: traced object, or call that has not been made.
        path: where the call stands.

    Yields:
        Path and mutable, such as `trainer.max_epochs`.
    """
    for index, value in enumerate(call.trace_args):
        yield from _mutables_of(value, f"{path}[{index}]")
    for name, value in call.trace_kwargs.items():
        yield from _mutables_of(value, _joined(path, name))


def _mutables_of(value: Any, path: str) -> Iterator[tuple[str, Mutable]]:  # noqa: ANN401 - any argument
    if _is_call(value):
        yield from mutables_in(value, path)
    elif isinstance(value, Mutable):
        yield path, value
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from _mutables_of(one, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _mutables_of(one, _joined(path, str(key)))


def frozen_call(call: Any, sample: Sample) -> SerializableObject:  # noqa: ANN401 - a traced object
    """Return a new traced call with the sample's values in place of mutables, nested ones too.

    Args:
        call: traced object, or call that has not been made.
        sample: label to value.

    Returns:
        A new call. Calls among the arguments that have mutables are new, too, and not made yet;
        other arguments are the same objects.

    Raises:
        nni.mutable.SampleValidationError: the sample is not contained in a mutable.
    """
    return SerializableObject(
        call.trace_symbol,
        [_frozen(value, sample) for value in call.trace_args],
        {name: _frozen(value, sample) for name, value in call.trace_kwargs.items()},
    )


def _frozen(value: Any, sample: Sample) -> Any:  # noqa: ANN401 - any argument
    if next(_mutables_of(value, _ROOT), None) is None:
        return value
    if _is_call(value):
        return frozen_call(value, sample)
    if isinstance(value, Mutable):
        return value.freeze(sample)
    if isinstance(value, dict):
        return {key: _frozen(one, sample) for key, one in value.items()}
    parts = [_frozen(one, sample) for one in value]
    if hasattr(value, "_fields"):  # a named tuple, whose function reads it by names
        return type(value)(*parts)
    return parts if isinstance(value, list) else tuple(parts)


def _is_call(value: object) -> bool:
    return is_traceable(value, must_be_instance=True)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name

"""JSON encoder of metrics, including numpy and torch scalars and arrays."""

import json

MAX_METRIC_BYTES = 1_000_000
"""Longest JSON text of one metric, in UTF-8."""
_SHOWN = 80
"""Characters of a refused value that an error message quotes."""


def encode_metric(value: object) -> str:
    """Return a metric as one line of JSON, NaN bare; raise if it has no such form or is too large.

    Args:
        value: any JSON value. Objects of numpy, torch, jax and TensorFlow become the numbers or
            lists of numbers that they hold.

    Raises:
        TypeError: some part of the value has no form in JSON.
        ValueError: the value contains itself, or its text exceeds `MAX_METRIC_BYTES`.
    """
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"a metric must be a JSON value, got {_shown(value)} of type "
            f"{type(value).__name__}: {error}; report a number, or a dict with key 'default'"
        ) from error
    if len(text) <= MAX_METRIC_BYTES:  # it is ASCII
        return text
    text = _compact(value, text)
    if len(text.encode()) > MAX_METRIC_BYTES:
        raise ValueError(
            f"a metric must have at most {MAX_METRIC_BYTES} bytes as JSON, got {len(text)} "
            f"({_shown(value)}); write large results to a file in NNI_OUTPUT_DIR instead"
        )
    return text


def _plain(part: object) -> object:
    """Return a part unknown to `json` as numbers, strings, lists or dicts; or raise TypeError.

    ``numpy()`` is how TensorFlow's tensors give up their values; detached torch tensors, numpy
    and jax arrays and scalars all have ``tolist()``.
    """
    for method in ("tolist", "item", "numpy"):
        convert = getattr(part, method, None)
        if callable(convert):
            return convert()
    raise TypeError(f"{_shown(part)} of type {type(part).__name__} has no form in JSON")


_encode = json.JSONEncoder(default=_plain).encode
"""`json.dumps` makes an encoder at each call."""


def _compact(value: object, text: str) -> str:
    """Return a value as JSON without escapes and spaces, or `text` if that is no UTF-8."""
    short = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
    try:
        short.encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no UTF-8
        return text
    return short


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an object whose repr fails is not the point of the error
        text = object.__repr__(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."

"""Decoder of `nni.load`: values of JSON become the objects that they describe."""

import json
import re
from collections import OrderedDict
from typing import Any

from nni.common.serializer.array_values import array_value
from nni.common.serializer.encoding import (
    ARGS,
    BYTES,
    INSTANCE,
    KWARGS,
    PATH,
    PICKLE,
    SYMBOL,
    SYMBOL_ONLY,
)
from nni.common.serializer.pickles import from_text
from nni.common.serializer.standard_values import standard_value
from nni.common.serializer.symbols import symbol_at
from nni.common.serializer.tracing import trace

_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|(?:#|//)[^\n]*|/\*.*?\*/', re.DOTALL)


def decode(text: str, *, preserve_order: bool = False, ignore_comments: bool = True) -> Any:  # noqa: ANN401 - any object
    """Parse a JSON document, comments allowed, and return the object that it describes.

    Args:
        text: the document.
        preserve_order: return `OrderedDict` for plain objects of the document.
        ignore_comments: allow comments after `#` and `//`, and between `/*` and `*/`.

    Raises:
        ValueError: the text is no JSON.
        ImportError: a class or function of the document cannot be imported here.
    """

    def members(pairs: list[tuple[str, Any]]) -> Any:  # noqa: ANN401 - any object
        form = dict(pairs)
        value = object_of(form)
        return OrderedDict(pairs) if preserve_order and value is form else value

    try:
        return json.loads(text, object_pairs_hook=members)
    except json.JSONDecodeError:
        if not ignore_comments:
            raise
        without = _STRING_OR_COMMENT.sub(lambda match: match[1] or "", text)
        if without == text:
            raise
    return json.loads(without, object_pairs_hook=members)


def object_of(form: dict[str, Any]) -> Any:  # noqa: ANN401 - any object
    """Return the value that a JSON object describes; the object itself if it describes none.

    Args:
        form: the object, its members decoded.
    """
    if SYMBOL in form:
        args, kwargs = form.get(ARGS, []), form.get(KWARGS, {})
        # Arguments recorded by position stay so, or the next document would differ.
        return trace(symbol_of(form[SYMBOL]), kw_only=not args)(*args, **kwargs)
    if SYMBOL_ONLY in form:
        return symbol_of(form[SYMBOL_ONLY])
    if INSTANCE in form:
        members = {key: value for key, value in form.items() if key != INSTANCE}
        return symbol_of(form[INSTANCE])._load(**members)  # noqa: SLF001 - the hook
    if PICKLE in form:
        return from_text(form[PICKLE])
    value = array_value(form)
    return standard_value(form) if value is form else value


def symbol_of(text: str) -> Any:  # noqa: ANN401 - any class or function
    """Return the class or function in a text: `path:` is imported, `bytes:` is unpickled.

    Args:
        text: `path:` with the path, or `bytes:` with a pickle.

    Raises:
        ValueError: the text begins otherwise.
    """
    if text.startswith(PATH):
        return symbol_at(text.removeprefix(PATH))
    if text.startswith(BYTES):
        return from_text(text.removeprefix(BYTES))
    raise ValueError(f"a class or function begins with {PATH!r} or {BYTES!r}, got {text[:40]!r}")

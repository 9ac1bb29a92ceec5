"""JSON forms of arrays of numpy and tables of pandas, in the shapes of json-tricks.

Neither package is imported before a value of it occurs.
"""

import sys
from collections.abc import Callable
from typing import Any, Literal

Form = dict[str, Any]
Encode = Callable[[Any, str], Any]
_PLAIN_KINDS = "biufcUSO"
"""Kinds of numpy's data types whose elements have a JSON form."""
_PLAIN_SCALARS = "biufcUS"
_OBJECTS = "O"


def array_form(value: Any, encode: Encode) -> tuple[Any] | None:  # noqa: ANN401 - any object
    """Return the JSON form of an array, numpy scalar or table, in a tuple of one; None for others.

    Args:
        value: any object.
        encode: encodes the elements.

    Returns:
        None if it is no such value, or has parts that the form cannot express.
    """
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and type(value) is numpy.ndarray:
        return _ndarray_form(value, encode)
    if numpy is not None and isinstance(value, numpy.generic):
        plain = value.dtype.kind in _PLAIN_SCALARS and type(value.item()) is not type(value)
        return (encode(value.item(), ""),) if plain else None
    if pandas is not None and type(value) is pandas.DataFrame:
        return _frame_form(value, encode)
    if pandas is not None and type(value) is pandas.Series:
        return _series_form(value, encode)
    return None


def _ndarray_form(value: Any, encode: Encode) -> tuple[Any] | None:  # noqa: ANN401 - an array
    long_double = value.dtype.kind in "fc" and type(value.dtype.type(0).item()) is value.dtype.type
    if value.dtype.kind not in _PLAIN_KINDS or long_double or not value.dtype.isnative:
        return None
    form = {
        "__ndarray__": encode(value.tolist(), ""),
        "dtype": str(value.dtype),
        "shape": list(value.shape),
    }
    if value.ndim > 1:
        form["Corder"] = bool(value.flags["C_CONTIGUOUS"])
    return (form,)


def _frame_form(value: Any, encode: Encode) -> tuple[Any] | None:  # noqa: ANN401 - a table
    names = list(value.columns)
    if not _is_simple(value) or not all(type(name) is str for name in names):
        return None
    if len(set(names)) < len(names) or {"index", "__pandas_dataframe__"} & set(names):
        return None
    types = [str(one) for one in value.dtypes]
    head = {"column_order": names, "types": types}
    columns = {name: encode(value[name].tolist(), f"[{name!r}]") for name in names}
    index = encode(value.index.tolist(), ".index")
    return ({"__pandas_dataframe__": head, "index": index, **columns},)


def _series_form(value: Any, encode: Encode) -> tuple[Any] | None:  # noqa: ANN401 - a column
    if not _is_simple(value):
        return None
    form = {
        "__pandas_series__": {"name": encode(value.name, ".name"), "type": str(value.dtype)},
        "index": encode(value.index.tolist(), ".index"),
        "data": encode(value.tolist(), ""),
    }
    return (form,)


def _is_simple(table: Any) -> bool:  # noqa: ANN401 - a table or column
    """Return whether a flat index of numbers or texts has no name, and all types are plain."""
    types = table.dtypes if hasattr(table, "columns") else [table.dtype]
    plain = all(
        getattr(one, "kind", "") in _PLAIN_KINDS and not hasattr(one, "categories") for one in types
    )
    if any(axis.name is not None for axis in table.axes):
        return False
    return plain and table.index.nlevels == 1 and table.index.dtype.kind in "iuUO"


def array_value(form: Form) -> Any:  # noqa: ANN401 - an array or table
    """Return the value of a JSON form; the form itself if it is not one of this module.

    Args:
        form: object of a JSON document, its parts decoded.
    """
    if "__ndarray__" in form:
        return _ndarray(form)
    if "__pandas_dataframe__" in form:
        import pandas as pd

        head = form["__pandas_dataframe__"]
        kinds = dict(zip(head["column_order"], head["types"], strict=True))
        columns = {name: pd.Series(form[name], dtype=kinds[name]) for name in kinds}
        return pd.DataFrame(columns, columns=head["column_order"]).set_axis(form["index"], axis=0)
    if "__pandas_series__" in form:
        import pandas as pd

        head = form["__pandas_series__"]
        return pd.Series(form["data"], form["index"], dtype=head["type"], name=head["name"])
    return form


def _ndarray(form: Form) -> Any:  # noqa: ANN401 - an array
    import numpy as np

    shape, kind = tuple(form["shape"]), form["dtype"]
    if kind == "object":
        array: Any = np.empty(shape, dtype=object)
        flat = form["__ndarray__"]
        for _ in shape[1:]:
            flat = [one for part in flat for one in part]
        if not shape:
            array[()] = flat
        for place, one in zip(np.ndindex(*shape), flat if shape else (), strict=False):
            array[place] = one
        return array
    order: Literal["C", "F"] = "C" if form.get("Corder", True) else "F"
    return np.asarray(form["__ndarray__"], dtype=kind, order=order).reshape(shape, order="A")

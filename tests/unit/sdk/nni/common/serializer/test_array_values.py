from typing import Any

import numpy as np
import pytest

from nni.common.serializer.array_values import array_form, array_value

pd: Any = pytest.importorskip("pandas")


def same(value: Any, suffix: str) -> Any:
    del suffix
    return value


def test_the_form_of_an_array_is_that_of_json_tricks() -> None:
    assert array_form(np.arange(4.0).reshape(2, 2), same) == (
        {
            "__ndarray__": [[0.0, 1.0], [2.0, 3.0]],
            "dtype": "float64",
            "shape": [2, 2],
            "Corder": True,
        },
    )


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.1, np.inf], dtype="float32"),
        np.zeros((0, 3)),
        np.array(3),
        np.array(["a", "bc"]),
        np.array([1 + 2j], dtype="complex64"),
        np.array([{"a": 1}, None], dtype=object),
        np.array({"a": 1}, dtype=object),
        np.array([[1, "a"], [None, 2]], dtype=object),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
    ],
)
def test_arrays_keep_type_shape_order_and_elements(array: Any) -> None:
    form = array_form(array, same)

    assert form is not None
    made = array_value(form[0])
    assert made.dtype == array.dtype
    assert made.shape == array.shape
    assert made.flags["C_CONTIGUOUS"] == array.flags["C_CONTIGUOUS"]
    np.testing.assert_array_equal(made, array)


@pytest.mark.parametrize(
    ("scalar", "plain"),
    [(np.float32(2.5), 2.5), (np.int64(3), 3), (np.True_, True), (np.str_("a"), "a")],
)
def test_scalars_become_plain(scalar: Any, plain: object) -> None:
    form = array_form(scalar, same)

    assert form == (plain,)
    assert form is not None
    assert type(form[0]) is type(plain)


def test_a_table_keeps_names_types_and_index() -> None:
    table = pd.DataFrame({"a": [1, 2], "b": [0.5, 0.25]}, index=["x", "y"]).astype({"a": "int16"})

    form = array_form(table, same)

    assert form is not None
    assert form[0]["__pandas_dataframe__"]["types"] == ["int16", "float64"]
    pd.testing.assert_frame_equal(array_value(form[0]), table, check_index_type=False)


def test_a_column_keeps_its_name() -> None:
    column = pd.Series([1, 2], name="s", index=[5, 6])

    form = array_form(column, same)

    assert form is not None
    pd.testing.assert_series_equal(array_value(form[0]), column)


@pytest.mark.parametrize(
    "value",
    [
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.datetime64("2020-01-01"),
        np.array([1.0], dtype=">f8"),
        np.array([(1, 2)], dtype=[("a", int), ("b", int)]),
        pd.DataFrame({1: [1]}),
        pd.DataFrame({"index": [1]}),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        [1],
    ],
)
def test_what_the_forms_cannot_express_has_none(value: object) -> None:
    assert array_form(value, same) is None


def test_other_objects_stay() -> None:
    assert array_value({"a": 1}) == {"a": 1}


def test_names_of_an_index_and_categories_have_no_form() -> None:
    named = pd.DataFrame({"a": [1]}, index=pd.Index([3], name="id"))
    sizes = pd.Series(pd.Categorical(["s"], categories=["m", "s"], ordered=True))

    assert array_form(named, same) is None
    assert array_form(named["a"], same) is None
    assert array_form(sizes, same) is None
    assert array_form(pd.DataFrame({"size": sizes}), same) is None

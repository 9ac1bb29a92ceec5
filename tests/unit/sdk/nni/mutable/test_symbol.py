"""Symbols are variables that can be converted, copied and stored."""

import copy
import pickle

from nni.mutable import Categorical, CategoricalMultiple, MutableSymbol, Numerical

SYMBOLS: list[MutableSymbol] = [
    Categorical([1, 2], label="a"),
    CategoricalMultiple([1, 2], label="b"),
    Numerical(0, 1, label="c"),
]


def test_conversions_are_expressions() -> None:
    number = Numerical(0, 10, quantize=1, label="n")

    assert repr(number.int().freeze({"n": 3.0})) == "3"
    assert repr(Categorical([3], label="n").float().freeze({"n": 3})) == "3.0"
    assert repr(number.int() * 2) == "(int(n) * 2)"


def test_pickled_symbol_is_equal() -> None:
    for symbol in SYMBOLS:
        loaded = pickle.loads(pickle.dumps(symbol))

        assert loaded is not symbol
        assert loaded.equals(symbol)


def test_copied_symbol_is_the_same() -> None:
    assert all(copy.deepcopy(symbol) is symbol for symbol in SYMBOLS)
    assert all(copy.copy(symbol) is symbol for symbol in SYMBOLS)

"""Frozen contexts hold the sample of what is made inside."""

import threading

import pytest

from nni.mutable import (
    Categorical,
    ExpressionConstraint,
    MutableList,
    SampleMissingError,
    ensure_frozen,
    frozen_context,
    frozen_factory,
)

A = Categorical([1, 2, 3], label="a")


@pytest.mark.claim("nas", 23)
def test_mutable_is_frozen_by_the_context() -> None:
    with frozen_context({"a": 2}):
        assert ensure_frozen(Categorical([1, 2, 3], label="a")) == 2
    with pytest.raises(RuntimeError, match="inside a frozen_context"):
        ensure_frozen(Categorical([1, 2, 3], label="a"))


def test_what_is_not_mutable_passes() -> None:
    assert ensure_frozen(7) == 7


def test_given_sample_has_precedence() -> None:
    with frozen_context({"a": 2}):
        assert ensure_frozen(A, sample={"a": 3}) == 3


def test_missing_label_comes_with_a_hint() -> None:
    with frozen_context({"b": 1}), pytest.raises(SampleMissingError) as raised:
        ensure_frozen(A)

    assert "add_mutable" in raised.value.__notes__[0]


def test_default_where_it_need_not_be_frozen() -> None:
    b = Categorical([1, 2], label="b")
    space = MutableList([A, b, ExpressionConstraint(A + b == 5, label="c")])

    assert ensure_frozen(A, strict=False) == 1
    assert ensure_frozen(space, strict=False) == [3, 2, None]
    with pytest.raises(ValueError, match="one of 0 random samples"):
        ensure_frozen(space, strict=False, retries=0)


def test_contexts_are_merged() -> None:
    with frozen_context({"a": 1, "b": 1}), frozen_context({"b": 2}):
        assert frozen_context.current() == {"a": 1, "b": 2}


def test_there_is_no_sample_outside() -> None:
    assert frozen_context.current() is None


def test_update_writes_the_innermost_context() -> None:
    with frozen_context({"a": 1}):
        with frozen_context():
            frozen_context.update({"a": 2})
            assert ensure_frozen(A) == 2
        assert frozen_context.current() == {"a": 1}


def test_update_outside_is_refused() -> None:
    with pytest.raises(RuntimeError, match="inside a frozen_context"):
        frozen_context.update({"a": 1})


def test_update_leaves_the_sample_of_the_caller() -> None:
    sample = {"a": 1}
    with frozen_context(sample) as inner:
        frozen_context.update({"b": 1})
        assert inner == {"a": 1, "b": 1}

    assert sample == {"a": 1}


def test_bypass_hides_all_contexts() -> None:
    with frozen_context({"a": 2}):
        with frozen_context.bypass():
            assert frozen_context.current() is None
        assert ensure_frozen(A) == 2


def test_context_ends_with_an_error() -> None:
    with pytest.raises(KeyError), frozen_context({"a": 1}):
        raise KeyError

    assert frozen_context.current() is None


def test_contexts_of_another_thread_are_not_seen() -> None:
    seen: list[object] = []
    with frozen_context({"a": 2}):
        thread = threading.Thread(target=lambda: seen.append(frozen_context.current()))
        thread.start()
        thread.join()

    assert seen == [None]


def test_factory_makes_objects_inside() -> None:
    def network(scale: int) -> int:
        return scale * int(ensure_frozen(A))

    fixed = frozen_factory(network, {"a": 3})

    assert (fixed(2), fixed(scale=5)) == (6, 15)
    assert frozen_context.current() is None

import copy
import io
import pickle
from abc import ABC
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import cloudpickle
import pytest
import torch
from torch import nn

import nni
from nni.common.serializer import SerializableObject, is_traceable, is_wrapped_with_trace


class Rate:
    def __init__(self, value: float, *, decay: float = 1.0) -> None:
        self.value = value * decay


class Names:
    def __init__(self, names: list[str], *others: list[str]) -> None:
        names.append("changed")
        self.names = names
        self.others = others


@nni.trace
class Decorated:
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


@nni.trace
def decorated_rate(decay: float) -> Rate:
    return Rate(1.0, decay=decay)


def copies() -> list[Any]:
    def by_pickle(value: object) -> object:
        return pickle.loads(pickle.dumps(value))

    def by_cloudpickle(value: object) -> object:
        return cloudpickle.loads(cloudpickle.dumps(value))

    return [copy.copy, copy.deepcopy, by_pickle, by_cloudpickle]


@pytest.mark.claim("nas", 2)
def test_tracing_twice_returns_the_same_class_whose_instances_are_of_the_original() -> None:
    assert nni.trace(nni.trace(Rate)) is nni.trace(Rate)
    assert isinstance(nni.trace(Rate)(1.0), Rate)
    assert nni.trace(Rate).__qualname__ == "Rate"
    assert nni.trace(Decorated) is Decorated


@pytest.mark.claim("nas", 3)
@pytest.mark.parametrize("value", [3, nn.ReLU(), "Rate"])
def test_what_is_no_class_or_function_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="needs a class or function, got"):
        nni.trace(value)


@pytest.mark.claim("nas", 4)
def test_positional_arguments_are_recorded_by_name() -> None:
    rate: Any = nni.trace(Rate)(2.0, decay=0.5)

    assert rate.value == 1.0
    assert (rate.trace_symbol, rate.trace_args) == (Rate, [])
    assert rate.trace_kwargs == {"value": 2.0, "decay": 0.5}


@pytest.mark.claim("nas", 5)
def test_a_traced_function_that_returns_none_yields_an_object() -> None:
    made: Any = nni.trace(lambda: None)()

    assert made is not None
    assert made
    assert is_traceable(made)


@pytest.mark.claim("nas", 6)
def test_a_subclass_of_a_traced_class_is_not_traced() -> None:
    class Sub(Decorated):
        pass

    assert is_wrapped_with_trace(Decorated)
    assert not is_wrapped_with_trace(Sub)
    assert Sub(3).size == 3
    assert not is_traceable(Sub(3))


@pytest.mark.claim("nas", 7)
def test_a_traced_class_counts_unless_an_instance_is_wanted() -> None:
    assert is_traceable(Decorated)
    assert not is_traceable(Decorated, must_be_instance=True)
    assert is_traceable(Decorated(1), must_be_instance=True)


@pytest.mark.claim("nas", 8)
def test_a_changed_copy_of_the_call_builds_another_object() -> None:
    rate: Any = nni.trace(Rate)(2.0, decay=0.5)

    shell = rate.trace_copy()
    shell.trace_kwargs["value"] = 8.0

    assert isinstance(shell, SerializableObject)
    assert not hasattr(shell, "value")
    assert shell.get().value == 4.0
    assert is_traceable(shell.get())
    assert type(shell.get(False)) is Rate
    assert rate.trace_kwargs["value"] == 2.0


@pytest.mark.claim("nas", 9)
def test_the_callee_cannot_change_the_record() -> None:
    names: Any = nni.trace(Names)(["a"])

    assert names.names == ["a", "changed"]
    assert names.trace_kwargs == {"names": ["a"]}


@pytest.mark.claim("nas", 13)
def test_the_environment_switches_tracing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_TRACE_FLAG", "Disable")

    assert nni.trace(Rate) is Rate


def test_arguments_beyond_names_keep_all_positions() -> None:
    names: Any = nni.trace(Names)(["a"], ["b"])

    assert names.trace_args == [["a"], ["b"]]


def test_positions_are_kept_on_request() -> None:
    made: Any = nni.trace(kw_only=False)(Rate)(2.0)

    assert (made.trace_args, made.trace_kwargs) == ([2.0], {})


def test_a_record_is_inherited_on_request() -> None:
    class Base:
        def __init__(self, size: int) -> None:
            self.size = size

    traced: Any = nni.trace(Base, inheritable=True)

    class Sub(traced):  # type: ignore[misc]  # a base made by a call
        def __init__(self) -> None:
            super().__init__(5)

    made: Any = Sub()

    assert (made.trace_symbol, made.trace_kwargs) == (Base, {"size": 5})
    with pytest.raises(TypeError, match="was traced with inheritable=True"):
        nni.trace(Sub)


def test_a_subclass_of_a_traced_class_can_be_traced_itself() -> None:
    @nni.trace
    class Sub(Decorated):
        def __init__(self, width: int) -> None:
            super().__init__(2 * width)

    made: Any = Sub(2)

    assert (made.size, made.trace_kwargs) == (4, {"width": 2})


def test_a_metaclass_of_its_own_below_a_traced_class_is_refused() -> None:
    class Meta(type):
        pass

    class Sub(Decorated, metaclass=Meta):
        pass

    with pytest.raises(TypeError, match="has the metaclass Meta and the traced base Decorated"):
        nni.trace(Sub)


def test_an_abstract_class_below_a_traced_class_can_be_traced() -> None:
    class Sub(Decorated, ABC):
        pass

    assert is_traceable(nni.trace(Sub)(1))


@pytest.mark.parametrize("copied", copies())
@pytest.mark.parametrize(
    "make",
    [
        lambda: nni.trace(Rate)(2.0),
        lambda: Decorated(3),
        lambda: nni.trace(nn.Linear)(2, 3),
        lambda: nni.trace(torch.optim.SGD)(nn.Linear(1, 1).parameters(), 0.1),
        lambda: nni.trace(Fraction)(1, 2),
    ],
)
def test_an_instance_keeps_its_record_in_copies_and_pickles(
    copied: Callable[..., Any], make: Callable[[], Any]
) -> None:
    original = make()
    made = copied(original)

    assert type(made) is type(original)
    assert made.trace_symbol is original.trace_symbol
    assert list(made.trace_kwargs) == list(original.trace_kwargs)
    assert is_traceable(made)


def test_a_pickled_instance_keeps_its_state() -> None:
    rate: Any = nni.trace(Rate)(2.0)
    rate.value = 7.0

    assert copy.deepcopy(rate).value == 7.0


@pytest.mark.parametrize("value", [3, 2.5, "text", True, [1], (1, 2), {"a": 1}, {1}, b"x"])
def test_results_of_builtin_types_carry_the_record(value: Any) -> None:
    make: Any = nni.trace(lambda: value)
    made = make()

    assert made == value
    assert is_traceable(made)
    assert made.trace_copy().get() == value
    assert isinstance(made, int if value is True else type(value))


def test_a_traced_builtin_keeps_its_record_in_a_pickle() -> None:
    made: Any = nni.trace(range_of)(3)

    for copied in copies():
        assert copied(made) == [0, 1, 2]
        assert copied(made).trace_kwargs == {"end": 3}
        assert copied(made).trace_copy().trace_kwargs == {"end": 3}


def opened_file() -> io.StringIO:
    return io.StringIO()


def range_of(end: int) -> list[int]:
    return list(range(end))


@pytest.mark.parametrize(
    ("result", "kind"), [(len, "function"), (Rate, "class"), (pickle, "module")]
)
def test_results_that_cannot_be_made_again_are_refused(result: object, kind: str) -> None:
    with pytest.raises(TypeError, match=f"returned the {kind}"):
        nni.trace(lambda: result)()


def test_an_open_file_as_result_is_refused() -> None:
    with pytest.raises(TypeError, match="open file"):
        nni.trace(opened_file)()


def test_an_iterator_reaches_constructors_that_take_it_twice_as_one_list() -> None:
    class Twice:
        def __new__(cls, values: Iterator[int]) -> "Twice":
            made = super().__new__(cls)
            made.seen = list(values)
            return made

        def __init__(self, values: Iterator[int]) -> None:
            self.kept = list(values)

        seen: list[int]

    made: Any = nni.trace(Twice)(iter([1, 2]))

    assert made.seen == made.kept == made.trace_kwargs["values"] == [1, 2]


def test_a_decorated_function_records_its_call() -> None:
    made: Any = decorated_rate(0.5)

    assert (made.value, made.trace_kwargs) == (0.5, {"decay": 0.5})
    assert made.trace_copy().get().value == 0.5


def test_shells_among_arguments_are_made_with_the_call() -> None:
    inner: Any = nni.trace(Rate)(2.0)
    outer: Any = nni.trace(Names)([], [inner])

    shell = outer.trace_copy()
    shell.trace_args[1] = [inner.trace_copy()]

    assert shell.get().others[0][0].value == 2.0
    assert "Names" in repr(shell)

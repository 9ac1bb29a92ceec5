import pickle
from typing import Any

import pytest

import nni
from nni.common.serializer.copying import CALL, reduction


class Plain:
    def __init__(self, one: int) -> None:
        self.one = one


class WithState(Plain):
    def __getstate__(self) -> dict[str, int]:
        return {"one": self.one}


class WithReduce(Plain):
    def __reduce__(self) -> Any:
        return type(self), (self.one,)


class ByFunction(Plain):
    def __reduce__(self) -> Any:
        return make_by_function, (self.one,)


class WithArguments(Plain):
    def __getnewargs__(self) -> tuple[int]:
        return (self.one,)

    def __new__(cls, one: int) -> "WithArguments":
        made = super().__new__(cls)
        made.seen = one
        return made

    seen: int


def make_by_function(one: int) -> ByFunction:
    return ByFunction(one)


@pytest.mark.parametrize("cls", [Plain, WithState, WithReduce, ByFunction, WithArguments])
def test_every_way_of_pickling_keeps_class_and_record(cls: type[Plain]) -> None:
    original: Any = nni.trace(cls)(3)

    made = pickle.loads(pickle.dumps(original))

    assert (type(made), made.one) == (type(original), 3)
    assert (made.trace_symbol, made.trace_kwargs) == (cls, {"one": 3})


def test_arguments_that_refer_to_the_object_are_pickled_once() -> None:
    original: Any = nni.trace(Plain)(3)
    original.trace_kwargs["one"] = [original]

    made = pickle.loads(pickle.dumps(original))

    assert made.trace_kwargs["one"][0] is made


def test_a_class_that_pickles_by_its_own_call_is_called_again() -> None:
    original: Any = nni.trace(WithReduce)(3)

    reduced: Any = reduction(original, 4, make_by_function)
    restore, (_, make, made_of, _) = reduced[:2]

    assert restore is make_by_function
    assert (make, made_of) == (CALL, ((3,), {}))


def test_a_subclass_pickles_by_its_own_name() -> None:
    made = pickle.loads(pickle.dumps(SubOfTraced(4)))

    assert (type(made), made.one) == (SubOfTraced, 4)


class SubOfTraced(nni.trace(Plain)):  # type: ignore[misc]  # a base made by a call
    pass

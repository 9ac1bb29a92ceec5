"""Markers of basic units and wrapped models."""

import pytest
from torch import nn

from nni.nas.nn.pytorch import ModelSpace, MutableLinear
from nni.nas.utils import basic_unit, is_basic_unit, is_model_wrapped


@basic_unit
class Shift(nn.Module):
    def __init__(self, offset: int, scale: int = 1) -> None:
        super().__init__()
        self.offset = offset
        self.scale = scale


class Net(ModelSpace):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)


def test_basic_unit_records_its_arguments() -> None:
    unit = Shift(3)

    assert unit.trace_kwargs == {"offset": 3}
    assert is_basic_unit(unit)
    assert is_basic_unit(Shift)


def test_decorating_twice_changes_nothing() -> None:
    assert basic_unit(Shift) is Shift


def test_tag_can_be_left_out() -> None:
    class Plain(nn.Module):
        pass

    assert not is_basic_unit(basic_unit(Plain, basic_unit_tag=False))


def test_class_that_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"cls must be a subclass of torch.nn.Module"):
        basic_unit(dict)


def test_plain_module_is_no_basic_unit_and_a_parametrized_one_is() -> None:
    assert not is_basic_unit(nn.Linear)
    assert is_basic_unit(MutableLinear)


def test_model_spaces_are_wrapped_models() -> None:
    assert is_model_wrapped(Net())
    assert not is_model_wrapped(nn.Linear)

from torch import nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.wrapper_set import WrapperSet


def test_a_module_of_two_names_is_replaced_under_both() -> None:
    linear = nn.Linear(1, 1)
    model = nn.Sequential(linear, linear)
    wrapper = ModuleWrapper(linear, "0", {})
    wrappers = WrapperSet(model, [wrapper])

    wrappers.enter()
    wrappers.enter()
    inside = list(model)
    wrappers.leave()
    wrappers.leave()

    assert inside == [wrapper, wrapper]
    assert list(model) == [linear, linear]
    assert not wrappers.is_wrapped


def test_wrappers_of_another_compressor_enter_together() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    wrappers = WrapperSet(model, [ModuleWrapper(model[0], "0", {})])

    wrappers.add([ModuleWrapper(model[1], "1", {})])
    wrappers.enter()

    assert all(isinstance(one, ModuleWrapper) for one in model)
    assert list(wrappers.by_name()) == ["0", "1"]
    assert wrappers.members == 2

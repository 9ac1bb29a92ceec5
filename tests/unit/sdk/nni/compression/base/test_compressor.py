import pytest
import torch
from torch import nn

from nni.compression.base.compressor import Compressor
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.config.settings import ConfigListError

EVERY = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]


def model_of(*modules: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*modules)


@pytest.mark.claim("compression", 10)
def test_wrapping_names_the_modules_and_unwrapping_restores_them() -> None:
    model = model_of(nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 2)))
    tree = list(model.named_modules())
    parameters = list(model.parameters())

    compressor = Compressor(model, EVERY)

    assert isinstance(model[0], ModuleWrapper)
    assert {"0", "0.module", "2.0", "2.0.module"} <= dict(model.named_modules()).keys()
    assert compressor.unwrap_model() is model
    assert list(model.named_modules()) == tree
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))


def test_wrapping_and_unwrapping_may_be_repeated() -> None:
    compressor = Compressor(model_of(nn.Linear(2, 2)), EVERY)

    for _ in range(2):
        compressor.wrap_model()
        assert compressor.is_wrapped
    for _ in range(2):
        compressor._unwrap_model()
        assert not compressor.is_wrapped


def test_a_module_with_several_names_is_wrapped_under_all() -> None:
    shared = nn.Linear(2, 2)
    model = model_of(shared, nn.Sequential(shared))

    compressor = Compressor(model, EVERY)

    assert list(compressor.get_modules_wrapper()) == ["0"]
    assert model[1].get_submodule("0") is model[0]
    compressor.unwrap_model()
    assert model[0] is model[1].get_submodule("0") is shared


def test_a_module_inside_another_wrapped_one_is_wrapped_too() -> None:
    attention = nn.MultiheadAttention(4, 2)
    model = model_of(attention)
    config_list = [
        {"op_types": ["NonDynamicallyQuantizableLinear"], "sparse_ratio": 0.5},
        {
            "op_types": ["MultiheadAttention"],
            "target_names": ["in_proj_weight"],
            "sparse_ratio": 0.5,
        },
    ]

    compressor = Compressor(model, config_list)
    x = torch.ones(3, 1, 4)

    assert list(compressor.get_modules_wrapper()) == ["0", "0.out_proj"]
    masked = model[0](x, x, x)[0]
    compressor.unwrap_model()
    assert torch.equal(masked, attention(x, x, x)[0])


def test_modules_and_their_types_are_listed() -> None:
    model = model_of(nn.Linear(2, 2))

    (layer,) = Compressor(model, EVERY).get_modules_to_compress()

    assert (layer.name, layer.type, type(layer.module)) == ("0", "Linear", nn.Linear)


def test_a_wrapped_model_and_what_is_no_model_are_refused() -> None:
    model = model_of(nn.Linear(2, 2))
    Compressor(model, EVERY)

    with pytest.raises(TypeError, match=r"call its unwrap_model\(\)"):
        Compressor(model, EVERY)
    with pytest.raises(TypeError, match="model must be a torch"):
        Compressor(3, EVERY)  # type: ignore[arg-type]


def test_a_refused_configuration_leaves_the_model() -> None:
    model = model_of(nn.Linear(2, 2))

    with pytest.raises(ConfigListError):
        Compressor(model, [{"op_types": ["Linear"], "sparse_ratio": 2}])

    assert type(model[0]) is nn.Linear


def test_a_compressor_without_a_model_gets_one_by_reset() -> None:
    compressor = Compressor(None, None)
    with pytest.raises(RuntimeError, match="Compressor has no model; call reset"):
        compressor.unwrap_model()
    model = model_of(nn.Linear(2, 2))

    compressor.reset(model, EVERY)

    assert compressor.bound_model is model
    assert list(compressor.get_modules_wrapper()) == ["0"]


def test_a_reset_restores_the_model_of_before() -> None:
    first, second = model_of(nn.Linear(2, 2)), model_of(nn.Linear(3, 3))
    compressor = Compressor(first, EVERY)

    compressor.reset(second, EVERY)

    assert isinstance(first[0], nn.Linear)
    assert isinstance(second[0], ModuleWrapper)


@pytest.mark.parametrize(("model", "config_list"), [(nn.Linear(1, 1), None), (None, EVERY)])
def test_a_model_and_a_configuration_are_given_together(
    model: nn.Module | None, config_list: list[dict[str, object]] | None
) -> None:
    with pytest.raises(TypeError, match="must be a"):
        Compressor(model, config_list)


def linear_net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))


LINEAR = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]


@pytest.mark.claim("compression", 16)
def test_collectors_are_called_until_they_are_removed() -> None:
    model = linear_net()
    compressor = Compressor(model, LINEAR)
    seen: list[tuple[str, torch.Size]] = []

    def collect(wrapper: ModuleWrapper, _inputs: object, output: torch.Tensor) -> None:
        seen.append((wrapper.module_name, output.shape))

    first = compressor.add_activation_collector(collect)
    second = compressor.add_activation_collector(lambda *_: None)
    model(torch.ones(3, 2))
    compressor.remove_activation_collector(first)
    model(torch.ones(3, 2))

    assert seen == [("0", torch.Size([3, 2])), ("2", torch.Size([3, 1]))]
    assert first != second
    with pytest.raises(ValueError, match=rf"has the number {first}, only \[{second}\]"):
        compressor.remove_activation_collector(first)


@pytest.mark.claim("compression", 17)
def test_attributes_of_wrappers_are_buffers_if_they_are_tensors() -> None:
    model = linear_net()
    compressor = Compressor(model, LINEAR)
    start = torch.zeros(1)

    compressor.set_wrappers_attribute("count", start)
    compressor.set_wrappers_attribute("rate", 0.5)

    first, second = compressor.get_modules_wrapper().values()
    first.count += 1
    state = model.state_dict()
    assert (state["0.count"], state["2.count"], start) == (1, 0, 0)
    assert not any(name.endswith("rate") for name in state)
    assert second.rate == 0.5


def test_another_model_has_no_collectors_of_the_one_before() -> None:
    compressor = Compressor(linear_net(), LINEAR)
    number = compressor.add_activation_collector(lambda *_: None)

    compressor.reset(linear_net(), LINEAR)

    with pytest.raises(ValueError, match="no activation collector has the number"):
        compressor.remove_activation_collector(number)

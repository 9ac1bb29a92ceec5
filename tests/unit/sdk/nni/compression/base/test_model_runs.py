import contextlib

from torch import nn

from nni.compression.base.model_runs import call_model, eval_mode


def test_each_module_gets_its_mode_back_even_after_an_error() -> None:
    model = nn.Sequential(nn.ReLU(), nn.ReLU().eval())

    with contextlib.suppress(ValueError), eval_mode(model):
        modes = [module.training for module in model.modules()]
        raise ValueError

    assert modes == [False, False, False]
    assert [module.training for module in model.modules()] == [True, True, False]


def test_inputs_are_one_value_several_or_named() -> None:
    class Difference(nn.Module):
        def forward(self, left: int, right: int = 1) -> int:
            return left - right

    model = Difference()

    assert call_model(model, 3) == 2
    assert call_model(model, (3, 2)) == call_model(model, [3, 2]) == 1
    assert call_model(model, {"right": 3, "left": 3}) == 0

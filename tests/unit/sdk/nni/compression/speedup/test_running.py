"""Runs that leave a model as it was."""

import torch
from torch import Tensor, nn

from nni.compression.speedup.running import module_stack, run, tensors_in, unchanged


def test_flags_buffers_and_cached_attributes_are_restored() -> None:
    class Caching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.cached: Tensor | None = None

        def forward(self, features: Tensor) -> Tensor:
            self.cached = features
            return self.norm(features)

    model = Caching().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}

    with unchanged(model):
        inside = {module.training for module in model.modules()}
        run(model, torch.randn(4, 3))

    assert inside == {False}
    assert all(module.training for module in model.modules())
    assert model.cached is None
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_products_have_full_precision_meanwhile() -> None:
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32

    with unchanged(nn.Linear(2, 2)):
        meanwhile = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32

    assert meanwhile == (False, False)
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == before


def test_inputs_may_be_lists_and_dicts() -> None:
    model = nn.Bilinear(2, 3, 4)
    left, right = torch.zeros(1, 2), torch.zeros(1, 3)

    for inputs in ((left, right), {"input1": left, "input2": right}):
        assert run(model, inputs).shape == (1, 4)


def test_tensors_of_nested_outputs_are_found() -> None:
    tensor = torch.zeros(1)

    assert len(tensors_in({"a": [tensor, (tensor, None)], "b": 1})) == 2


def test_only_modules_with_modules_of_their_own_train_for_the_sake_of_heads() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout())

    model = Block().eval()

    with unchanged(model, training_heads=True):
        inside = [name for name, module in model.named_modules() if module.training]

    assert inside == [""]
    assert not model.training


def test_runs_of_modules_that_are_not_part_of_the_model_do_not_count() -> None:
    class Activated(nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            return nn.Softplus()(features)

    model = nn.Sequential(Activated())
    runs: dict[str, int] = {}

    with module_stack(model, [], runs):
        model(torch.zeros(1))

    assert runs == {"": 1, "0": 1}

import pytest
import torch
from torch import Tensor, nn

from nni.compression.distillation.outputs import OutputRecord, plain_modules, unwrapped
from nni.compression.pruning import L1NormPruner


class Several(nn.Module):
    """Module that returns a pair or a dict."""

    def __init__(self, *, named: bool) -> None:
        super().__init__()
        self.named = named

    def forward(self, inputs: Tensor) -> object:
        pair = {"hidden": inputs, "logits": inputs + 1, "name": "x"}
        return pair if self.named else tuple(pair.values())


def recorded(module: nn.Module, *, calls: int = 1) -> OutputRecord:
    record = OutputRecord(with_gradients_only=True)
    handles = list(record.hooks({"one": module}))
    for _ in range(calls):
        module(torch.zeros(1))
    for handle in handles:
        handle.remove()
    module(torch.zeros(1))
    return record


def test_wrapped_modules_have_their_plain_names() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    before = plain_modules(model)
    pruner = L1NormPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])

    found = plain_modules(model)

    assert list(found) == list(before) == ["0", "1", "1.0"]
    assert found["1.0"] is pruner.get_modules_wrapper()["1.0"]
    assert unwrapped(found["1.0"]) is before["1.0"]


def test_a_shared_module_is_found_once() -> None:
    shared = nn.Linear(2, 2)

    assert list(plain_modules(nn.Sequential(shared, nn.ReLU(), shared))) == ["0", "1"]


@pytest.mark.parametrize(
    ("named", "target", "value"),
    [
        (False, "_output_", 0),
        (False, "_output_1", 1),
        (True, "_output_", 0),
        (True, "_output_logits", 1),
    ],
)
def test_parts_of_an_output_are_found(named: bool, target: str, value: float) -> None:
    record = recorded(Several(named=named), calls=2)

    assert [one.item() for one in record.of("one", target)] == [value, value]


def test_the_only_output_is_the_first() -> None:
    record = recorded(nn.Identity())

    assert len(record.of("one", "_output_0")) == 1
    record.clear()
    assert record.of("one", "_output_0") == []


@pytest.mark.parametrize(
    ("module", "target", "returned"),
    [
        (nn.Identity(), "_output_1", "a Tensor"),
        (Several(named=False), "_output_2", "3 outputs"),
        (Several(named=False), "_output_7", "3 outputs"),
        (Several(named=False), "_output_logits", "3 outputs"),
        (Several(named=True), "_output_missing", "a dict with hidden, logits, name"),
    ],
)
def test_parts_that_are_no_tensors_are_refused(
    module: nn.Module, target: str, returned: str
) -> None:
    record = recorded(module)

    with pytest.raises(ValueError, match=f"one has no output '{target}' .* it returns {returned}"):
        record.of("one", target)


def test_calls_without_gradients_are_left_out_on_request() -> None:
    module = nn.Identity()
    records = [OutputRecord(with_gradients_only=one) for one in (True, False)]
    for record in records:
        list(record.hooks({"one": module}))

    with torch.no_grad():
        module(torch.zeros(1))

    assert [len(record.of("one", "_output_")) for record in records] == [0, 1]


def test_an_output_is_recorded_before_a_later_module_changes_it() -> None:
    model = nn.Sequential(nn.Identity(), nn.ReLU(inplace=True))
    record = OutputRecord(with_gradients_only=False)
    handles = list(record.hooks({"0": model[0]}))

    model(torch.tensor([-1.0]))

    assert record.of("0", "_output_")[0].tolist() == [-1.0]
    for handle in handles:
        handle.remove()

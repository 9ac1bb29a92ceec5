"""Supernet that computes one sampled path, with gradients for the logits of all."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nni
from nni.nas.nn.pytorch import InputChoice, LayerChoice, ModelSpace, Repeat
from nni.nas.oneshot.pytorch.gated_modules import GatedWeights, gated_hook
from nni.nas.oneshot.pytorch.supernet import mutate
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Scaled


def gated(build: Any) -> tuple[Any, GatedWeights]:
    """Return a space with one gated primitive, and its logits."""

    class Space(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.part = build()

        def forward(self, inputs: Any) -> Any:
            return self.part(inputs)

    space, weights = Space(), GatedWeights()
    mutate(space, [gated_hook], {}, {"architecture": weights})
    return space, weights


CASES: dict[str, tuple[Any, Any, list[float]]] = {
    "layers": (
        lambda: LayerChoice([Scaled(2.0), Scaled(3.0), Scaled(7.0)], label="choice"),
        torch.ones(2),
        [4.0, 6.0, 14.0],
    ),
    "inputs": (
        lambda: InputChoice(2, 1, label="choice"),
        [torch.ones(2), 5 * torch.ones(2)],
        [2.0, 10.0],
    ),
    "depths": (
        lambda: Repeat(Scaled(2.0), (1, 3), label="choice"),
        torch.ones(2),
        [4.0, 8.0, 16.0],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_gradient_of_the_logits_is_that_of_the_mixture(case: str) -> None:
    build, inputs, outputs = CASES[case]
    space, weights = gated(build)
    logits = torch.linspace(-1, 1, len(outputs), requires_grad=True)
    with torch.no_grad():
        weights.logits("choice").copy_(logits)
    # The loss is linear, so its derivative by a gate is the output of the path.
    torch.autograd.backward((logits.softmax(0) * torch.tensor(outputs)).sum())

    space(inputs).sum().backward()

    torch.testing.assert_close(weights.logits("choice").grad, logits.grad)


def test_weights_of_the_sampled_path_alone_get_gradients() -> None:
    space, weights = gated(CASES["layers"][0])

    with weights.draw(constant=False):
        index = int(weights.weights("choice").argmax())
        space(torch.ones(2)).sum().backward()

    grads = [candidate.factor.grad for candidate in space.part]
    assert [grad is not None for grad in grads] == [at == index for at in range(3)]


def test_constant_draw_computes_one_path_without_gates() -> None:
    space, weights = gated(CASES["layers"][0])

    with weights.draw(constant=True):
        space(torch.ones(2)).sum().backward()

    assert weights.logits("choice").grad is None


def test_paths_are_sampled_by_their_probabilities() -> None:
    torch.manual_seed(0)
    space, weights = gated(CASES["layers"][0])
    with torch.no_grad():
        weights.logits("choice").copy_(torch.tensor([0.1, 0.2, 0.7]).log())
        share = sum(space(torch.ones(1)).item() == 7 for _ in range(300)) / 300

    # Standard deviation sqrt(0.7 * 0.3 / 300) = 0.026; four of them.
    assert share == pytest.approx(0.7, abs=0.11)


class Counted(nn.Module):
    """Layer that holds a large intermediate result for its backward pass."""

    saved: int = 0

    def forward(self, inputs: Tensor) -> Tensor:
        return (inputs.repeat(1, 50) ** 2).sum(1, keepdim=True)


@pytest.mark.claim("nas", 55)
def test_one_path_holds_less_than_the_mixture_of_four() -> None:
    from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import as_mixture

    def build() -> LayerChoice:
        return LayerChoice([Counted() for _ in range(4)], label="choice")

    class Mixed(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.part = build()

    def held(space: Any) -> int:
        """Return the bytes that autograd keeps after the forward pass."""
        sizes: dict[int, int] = {}

        def pack(value: Tensor) -> Tensor:
            storage = value.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
            return value

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            kept = space.part(torch.ones(8, 4, requires_grad=True))
        assert kept.requires_grad
        return sum(sizes.values())

    mixed = Mixed()
    as_mixture(mixed)
    single, _ = gated(build)

    # One of four paths, plus its output and the logits.
    assert held(single) < 0.4 * held(mixed)


@pytest.mark.parametrize(
    "build",
    [
        lambda: InputChoice(3, 2, label="choice"),
        lambda: InputChoice(3, 1, "concat", label="choice"),
        lambda: Repeat(Scaled(2.0), (0, 2), label="choice"),
        lambda: Repeat(Scaled(2.0), nni.choice("a", [1, 2]) + nni.choice("b", [1, 2])),
    ],
)
def test_other_choices_are_refused(build: Any) -> None:
    with pytest.raises(TypeError, match="at 'part' must have"):
        gated(build)


class Pair(nn.Module):
    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return inputs, inputs


def test_alternatives_that_return_several_tensors_are_refused() -> None:
    space, _ = gated(lambda: LayerChoice([Pair(), Pair()], label="choice"))

    with pytest.raises(TypeError, match=r"'choice' must return one tensor .* got tuple"):
        space(torch.ones(1))


def test_candidate_that_changes_its_input_in_place_is_refused() -> None:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = LayerChoice([nn.ReLU(inplace=True)], label="act")

    space = Net()
    mutate(space, [gated_hook], {}, {"architecture": GatedWeights()})

    with pytest.raises(RuntimeError, match="'act' changes its input in place"):
        space.layer(torch.ones(1))

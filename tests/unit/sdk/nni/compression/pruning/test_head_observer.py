import pytest
import torch
from torch import nn

from nni.compression.pruning.head_observer import HeadObserver, Statistic


def observed(statistic: Statistic) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return scores, inputs and their gradients of a projection of two heads over two batches."""
    torch.manual_seed(0)
    projection = nn.Linear(6, 2)
    observer = HeadObserver(3, statistic)
    handles = observer.attach({"out": projection})
    batches = [torch.randn(2, 4, 6, requires_grad=True) for _ in range(2)]
    for batch in batches:
        projection(batch * 1.0).square().sum().backward()
    for handle in handles:
        handle.remove()
    projection(torch.ones(1, 1, 6))  # not observed any more
    values = torch.cat(batches).detach().double()
    gradients = torch.cat([one.grad for one in batches if one.grad is not None]).double()
    return observer.scores("out"), values, gradients


def heads(values: torch.Tensor) -> torch.Tensor:
    return torch.stack([values[..., :3].sum(), values[..., 3:].sum()])


def test_sums_of_activations_are_those_of_a_loop() -> None:
    found, values, _ = observed("l1_activation")
    torch.testing.assert_close(found, heads(values.abs()))

    found, values, _ = observed("l2_activation")
    torch.testing.assert_close(found, heads(values.square()).sqrt())


def test_taylor_scores_are_output_times_gradient() -> None:
    found, values, gradients = observed("taylorfo")

    torch.testing.assert_close(found, heads((values * gradients).abs()))


def test_missing_data_is_an_error_and_a_new_start_forgets() -> None:
    observer, projection = HeadObserver(2, "l1_activation"), nn.Linear(4, 2)
    observer.attach({"out": projection})
    projection(torch.ones(1, 4))
    for handle in observer.attach({"out": projection}):
        handle.remove()

    with pytest.raises(RuntimeError, match="out got no data: forward_runner, trainer or eval"):
        observer.scores("out")

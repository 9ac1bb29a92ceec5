import pytest
import torch

from nni.compression.pruning.base_algorithms import base_algorithm


@pytest.mark.parametrize(
    ("name", "granularity", "metrics"),
    [
        ("level", "default", [7.0, 2.0, 6.0]),
        ("l1", "out_channel", [7.0, 2.0, 6.0]),
        ("l2", "out_channel", [5.0, 2.0, 6.0]),
        ("fpgm", "out_channel", [7.73, 10.45, 9.93]),
    ],
)
def test_each_name_ranks_blocks(name: str, granularity: str, metrics: list[float]) -> None:
    blocks = torch.tensor([[3.0, 4.0], [2.0, 0.0], [0.0, 6.0]])

    found = base_algorithm(name)

    assert found.granularity == granularity
    torch.testing.assert_close(found.metric(blocks), torch.tensor(metrics), atol=0.01, rtol=0)


def test_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"base_algo must be one of level, .*, got 'slim'"):
        base_algorithm("slim")

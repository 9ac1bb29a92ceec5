"""One-shot strategies search on a CUDA device, with automatic mixed precision, too."""

import pytest
import torch

from nni.testing.oneshot_strategies import (
    BranchSpace,
    ChainSpace,
    OneShotStrategyConformance,
    quiet_lightning,
)
from tests.conformance.nas import test_oneshot_strategies

if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

PRECISIONS = ["32-true", "16-mixed", "bf16-mixed"]
SUITES = [
    one
    for one in vars(test_oneshot_strategies).values()
    if isinstance(one, type)
    and issubclass(one, OneShotStrategyConformance)
    and one.__name__.startswith("Test")
]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("suite", SUITES)
def test_search_on_a_gpu_exports_an_architecture(
    suite: type[OneShotStrategyConformance], precision: str
) -> None:
    tests = suite()

    strategy = tests.searched(ChainSpace(), 2, accelerator="gpu", devices=1, precision=precision)

    assert ChainSpace().contains(tests.exported(strategy))
    assert all(bool(one.isfinite().all()) for one in strategy.supernet.parameters())


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("suite", [one for one in SUITES if one.prefers])
def test_better_branch_is_found_on_a_gpu(
    suite: type[OneShotStrategyConformance], precision: str
) -> None:
    tests = suite()

    strategy = tests.searched(
        BranchSpace(), suite.epochs, accelerator="gpu", devices=1, precision=precision
    )

    assert tests.exported(strategy) == {"branch": "line"}


def test_frozen_network_of_a_gpu_search_computes_on_the_cpu() -> None:
    tests = test_oneshot_strategies.TestRandomOneShot()
    strategy = tests.searched(BranchSpace(), 2, accelerator="gpu", devices=1)

    with quiet_lightning():
        frozen = strategy.supernet.freeze({"branch": "line"}).cpu()

    assert frozen(torch.ones(1, 2)).isfinite().all()

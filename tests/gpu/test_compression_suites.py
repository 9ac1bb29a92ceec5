"""Every pruner and quantizer passes its conformance suite on a CUDA device, too."""

from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from nni.testing.pruners import PrunerConformance
from nni.testing.quantizers import QuantizerConformance
from tests.conformance.compression import test_pruners, test_quantizers

if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

Suite = type[PrunerConformance] | type[QuantizerConformance]


def suites(module: ModuleType, base: Suite) -> list[Suite]:
    """Return the suites of a module of tests."""
    return [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, base) and one.__name__.startswith("Test")
    ]


def on_cuda(suite: Suite) -> type:
    """Return a suite whose models and inputs are on the GPU."""

    def make_model(self: PrunerConformance | QuantizerConformance) -> nn.Module:
        return suite.make_model(self).cuda()  # type: ignore[arg-type]

    def make_input(self: PrunerConformance | QuantizerConformance) -> Tensor:
        return suite.make_input(self).cuda()  # type: ignore[arg-type]

    name = f"{suite.__name__}OnCuda"
    return type(name, (suite,), {"make_model": make_model, "make_input": make_input})


for _found in (
    *suites(test_pruners, PrunerConformance),
    *suites(test_quantizers, QuantizerConformance),
):
    globals()[f"{_found.__name__}OnCuda"] = on_cuda(_found)

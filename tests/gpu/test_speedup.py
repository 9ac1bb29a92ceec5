"""Models on a CUDA device lose the same channels as on the CPU, and compute the same."""

import copy

import pytest
import torch
from torch import Tensor, nn

from nni.compression import prune
from nni.compression.pruning import L1NormPruner, LevelPruner
from nni.compression.speedup import ModelSpeedup
from nni.compression.speedup.shrinking import outputs_of, relative_error
from tests.unit.sdk.nni.compression.resnet import resnet18

if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

ROUNDING = 1e-5
"""Sums of thousands of float32 products, in another order: some ten units of 2**-24 a layer."""


def image() -> Tensor:
    return torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def network() -> nn.Module:
    return resnet18().eval()


def shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: one.shape for name, one in model.named_parameters()}


def test_prune_removes_what_it_removes_on_the_cpu() -> None:
    on_cpu, _ = prune(network(), image(), 0.5)

    on_gpu, report = prune(network().cuda(), image().cuda(), 0.5)

    assert shapes(on_gpu) == shapes(on_cpu)
    assert report.error <= ROUNDING
    assert {one.device.type for one in on_gpu.parameters()} == {"cuda"}
    (expected,), (found,) = outputs_of(on_cpu, image()), outputs_of(on_gpu, image().cuda())
    assert relative_error([expected], [found.cpu()]) <= ROUNDING


def test_speedup_of_masks_made_on_the_gpu_is_exact() -> None:
    model = network().cuda()
    pruner = L1NormPruner(model, [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}])
    _, masks = pruner.compress()
    pruner.unwrap_model()

    speedup = ModelSpeedup(model, image().cuda(), masks)
    speedup.speedup_model()

    assert speedup.report is not None
    assert speedup.report.error <= ROUNDING
    assert speedup.report.parameters_after < speedup.report.parameters_before


def test_smaller_model_trains_with_automatic_mixed_precision() -> None:
    smaller, _ = prune(network().cuda(), image().cuda(), 0.5)
    smaller.train()
    before = copy.deepcopy(smaller.state_dict())
    optimizer = torch.optim.SGD(smaller.parameters(), lr=0.1)

    with torch.autocast("cuda", dtype=torch.float16):
        loss = smaller(image().cuda()).square().mean()
    scaler = torch.amp.GradScaler("cuda", init_scale=64.0)
    scaler.scale(loss).backward()
    scaler.step(optimizer)

    assert any(not torch.equal(before[key], one) for key, one in smaller.state_dict().items())


def test_two_of_four_weights_run_on_sparse_tensor_cores() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(256, 128, bias=False).cuda().half()
    inputs = torch.randn(64, 256, device="cuda", dtype=torch.float16)
    pruner = LevelPruner(
        nn.Sequential(layer), [{"op_types": ["Linear"], "sparse_ratio": 0.5}], mode="balance"
    )
    _, masks = pruner.compress()
    pruner.unwrap_model()
    dense = layer.weight.detach() * masks["0"]["weight"]

    sparse = torch.sparse.to_sparse_semi_structured(dense)

    assert torch.allclose(
        torch.nn.functional.linear(inputs, sparse), inputs @ dense.T, rtol=1e-2, atol=1e-2
    )

"""Image classifiers of torchvision and timm, with random parameters, as subjects of compression.

Neither library is a requirement of the repository:
`pip install --no-deps torchvision==0.28.0 timm` adds them to an environment that has torch.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

REMEDY: Final = "pip install --no-deps torchvision==0.28.0 timm"
CLASSES: Final = 1000
"""Classes of the classifiers of torchvision."""
DECODABLE: Final = 2**22
"""Elements of a tensor that a random permutation keeps distinct in float32."""
MATRIX_RANK: Final = 2

_TIMM: Final = {
    106: "tinynet_e",
    160: "test_mambaout test_vit_relpos resnetrs50",
    192: "nf_regnet_b0 nfnet_f0 dm_nfnet_f0",
    224: """
        beit_base_patch16_224 mobileone_s1 cait_xxs24_224 coat_tiny convit_tiny convmixer_768_32
        convnext_atto cpubone_nano cspnext_tiny davit_tiny deit_tiny_patch16_224 densenet121
        dla46x_c dpn48b efficientformer_l1 efficientformerv2_s0 efficientvim_m1 efficientvit_b0
        efficientvit_m0 eva02_tiny_patch14_224 fasternet_t0 focalnet_tiny_srf gcvit_xxtiny
        ghostnet_050 hardcorenas_b hgnetv2_b0 hiera_tiny_224 hrnet_w18_small iformer_t
        inception_next_atto lcnetv2_small levit_128 lowformer_b0 poolformerv2_s12 gmlp_ti16_224
        mobilenetv3_small_050 mvitv2_tiny nest_tiny nextvit_small pit_ti_224 pvt_v2_b0 rdnet_tiny
        regnetx_002 repghostnet_050 repvit_m1 res2next50 resnest14d resnet18 resnetv2_18 rexnet_100
        selecsls42 legacy_seresnet18 sequencer2d_s shvit_s1 skresnet18 starnet_s050 swiftformer_xs
        swin_tiny_patch4_window7_224 swinv2_cr_tiny_224 tiny_vit_5m_224 tnt_s_legacy_patch16_224
        tresnet_m twins_svt_small vgg11 visformer_tiny vit_tiny_patch16_224 vit_tiny_r_s16_p8_224
        samvit_base_patch16_224 vitamin_small_224 volo_d1_224 ese_vovnet19b_slim_dw
        xcit_nano_12_p8_224 efficientnet_lite0 coatnet_pico_rw_224 regnety_002 repvgg_a0
        mambaout_femto convnextv2_atto seresnet18 regnetz_b16 resnext50_32x4d gernet_s
    """,
    240: "crossvit_tiny_240",
    256: """
        halonet_h1 cs3darknet_focus_s edgenext_xx_small fastvit_t8 hieradet_small
        maxvit_pico_rw_256 mobilenetv5_base mobilevit_xxs swinv2_tiny_window16_256 ecaresnet26t
    """,
}
"""Models of distinct families by the width of their images."""
_TORCHVISION_SIZES: Final = {"inception_v3": 299}
TIMM_PREFIX: Final = "timm/"


@dataclass(frozen=True, slots=True)
class Subject:
    """A model that can be built."""

    name: str
    """Name in torchvision, or `timm/` and the name in timm."""
    size: int
    """Height and width of its images."""

    @property
    def library(self) -> str:
        """Return `torchvision` or `timm`."""
        return "timm" if self.name.startswith(TIMM_PREFIX) else "torchvision"

    def build(self) -> nn.Module:
        """Return the model with its own initial parameters, in eval mode."""
        torch.manual_seed(0)
        if self.library == "timm":
            name = self.name.removeprefix(TIMM_PREFIX)
            model: nn.Module = _timm().create_model(name, pretrained=False)
        else:
            model = _torchvision_models().get_model(self.name, weights=None)
        return model.eval()

    def images(self, seed: int) -> Tensor:
        """Return one random image in a batch: shape (1, 3, size, size)."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(1, 3, self.size, self.size, generator=generator)


def missing_libraries() -> list[str]:
    """Return the libraries that are not installed."""
    return [one for one in ("torchvision", "timm") if importlib.util.find_spec(one) is None]


def subjects() -> list[Subject]:
    """Return the classifiers of torchvision, and the models of timm."""
    models = _torchvision_models()
    named = sorted(models.list_models(module=models))
    found = [Subject(name, _TORCHVISION_SIZES.get(name, 224)) for name in named]
    pairs = sorted((name, size) for size, names in _TIMM.items() for name in names.split())
    return found + [Subject(TIMM_PREFIX + name, size) for name, size in pairs]


@cache
def _torchvision_models() -> Any:
    """Import the models; operations of detection that a CPU build cannot load are named."""
    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        # The wheel's own operations need CUDA's libraries; where those are, it registers them.
        if torch.version.cuda is None and not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept_libraries.append(library)  # its definitions end with the object
    return importlib.import_module("torchvision.models")


_kept_libraries: list[torch.library.Library] = []


def _timm() -> Any:
    _torchvision_models()
    return importlib.import_module("timm")


def randomise(model: nn.Module, seed: int = 0) -> None:
    """Set all parameters and norm statistics to random values that keep activations in range.

    No value is zero, so that heads, scales and shifts with an initial zero are part of the check.
    Elements of a tensor differ, up to `DECODABLE` of them.

    Args:
        model: The model.
        seed: Seed of the values.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = _distinct(parameter, generator)
            if parameter.dim() > 1:
                fan_in = max(parameter[0].numel(), 2)
                parameter.copy_(values * (3 / fan_in) ** 0.5)
            elif name.endswith("weight"):
                parameter.copy_(1 + values / 2)
            else:
                parameter.copy_(values / 4)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.uniform_(-0.25, 0.25, generator=generator)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5, generator=generator)


def _distinct(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Return values between -1 and 1, none of them zero, in random order."""
    count = tensor.numel()
    if count > 2 * DECODABLE:
        return torch.rand(tensor.shape, generator=generator) * 2 - 1
    order = torch.randperm(count, generator=generator).reshape(tensor.shape)
    return (order * 2 + 1).float() / count - 1 + 1e-3 / count


def masked_twin(model: nn.Module, smaller: nn.Module) -> nn.Module:
    """Return the model with zeros for all elements that a smaller one lacks.

    The elements are found by their values, which `randomise` made distinct; nothing that the
    removal reports is used.

    Args:
        model: The model of original size, randomised.
        smaller: Result of a removal.

    Returns:
        A masked copy of the model.
    """
    twin = copy.deepcopy(model)
    rest = dict(smaller.named_parameters())
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            if name in rest and rest[name].shape != parameter.shape:
                parameter.mul_(_present(parameter, rest[name]))
    return twin


def masked_reference(
    model: nn.Module, masks: Mapping[str, Mapping[str, Tensor | None]], images: Tensor
) -> nn.Module:
    """Return a copy of a model times its masks; batch norms are silent on zero channels.

    Args:
        model: The model.
        masks: Masks by module and parameter.
        images: Images for one run.
    """
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for name, own in masks.items():
            for target, mask in own.items():
                if mask is not None:
                    twin.get_submodule(name).get_parameter(target).mul_(mask)
        hooks = [
            one.register_forward_pre_hook(_silence)
            for one in twin.modules()
            if isinstance(one, nn.BatchNorm1d | nn.BatchNorm2d)
        ]
        with _Unrectified():  # type: ignore[no-untyped-call]
            twin(images)
    for hook in hooks:
        hook.remove()
    return twin


class _Unrectified(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode in which rectifiers pass the values of channels that differ among images.

    A channel that a rectifier or GELU cuts off in all images is not zero then. One that masks make
    constant, such as the bias of a depthwise filter of a masked channel, is cut off as usual.
    """

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        name = str(func.overloadpacket).removeprefix("aten.")
        if name.removesuffix("_") not in {"relu", "hardtanh", "hardswish", "clamp_min", "gelu"}:
            return func(*args, **(kwargs or {}))
        before = args[0].clone()
        if before.dim() < MATRIX_RANK:
            return args[0] if name.endswith("_") else before
        cut = func(*args, **(kwargs or {}))
        channels = before.transpose(0, 1).flatten(1)
        constant = (channels == channels[:, :1]).all(dim=1)
        constant = constant.reshape([-1 if axis == 1 else 1 for axis in range(before.dim())])
        passed = torch.where(constant, cut, before)
        return cut.copy_(passed) if name.endswith("_") else passed


def _silence(norm: nn.BatchNorm1d | nn.BatchNorm2d, inputs: tuple[Tensor, ...]) -> None:
    """Set the affine parameters of channels to zero that are zero in all images."""
    silent = (inputs[0] == 0).transpose(0, 1).flatten(1).all(dim=1)
    for vector in (norm.weight, norm.bias):
        if vector is not None:
            vector[silent] = 0


def _present(full: Tensor, part: Tensor) -> Tensor:
    """Return which elements of a tensor are in a part of it."""
    return torch.isin(full, part) if full.numel() <= DECODABLE else present_by_indices(full, part)


def present_by_indices(full: Tensor, part: Tensor) -> Tensor:
    """Return which elements are in a part, where values may repeat.

    Args:
        full: All elements.
        part: The same tensor without some indices of its axes.

    Returns:
        1 and 0: the indices of each axis that hold the most values of the part; those of the second
        axis of a kernel are found for each filter.
    """
    present = torch.isin(full, part).float()
    mask = torch.ones_like(full)
    for axis, (before, after) in enumerate(zip(full.shape, part.shape, strict=True)):
        if before != after:
            others = [one for one in range(full.dim()) if one != axis]
            counts = present.mean(dim=others)
            kept = torch.zeros_like(counts).index_fill_(0, counts.topk(after).indices, 1.0)
            mask *= kept.reshape([-1 if one == axis else 1 for one in range(full.dim())])
    if full.dim() > MATRIX_RANK and (present * mask).sum() < mask.sum():
        return _kept_by_row(full, part, present)
    return mask


def _kept_by_row(full: Tensor, part: Tensor, present: Tensor) -> Tensor:
    """Return the elements of a kernel that stay; filters of different groups may keep others."""
    rows = present.flatten(1).mean(dim=1).topk(len(part)).indices.sort().values
    found = torch.zeros_like(full)
    for row, values in zip(rows.tolist(), part, strict=True):
        counts = torch.isin(full[row], values).flatten(1).float().mean(dim=1)
        found[row, counts.topk(part.shape[1]).indices] = 1.0
    return found


def parameters_outside_classifier(
    model: nn.Module, smaller: nn.Module, classes: int
) -> tuple[int, int]:
    """Return the number of elements of two models, without the parameters of the classifier.

    Those have one row for each class in both models; a hidden layer of the same width shrinks.
    """
    rest = dict(smaller.named_parameters())
    pairs = [
        (one, rest[name])
        for name, one in model.named_parameters()
        if {one.shape[:1], rest[name].shape[:1]} != {(classes,)}
    ]
    return sum(one.numel() for one, _ in pairs), sum(other.numel() for _, other in pairs)

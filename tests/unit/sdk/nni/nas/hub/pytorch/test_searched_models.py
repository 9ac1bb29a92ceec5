"""Networks that were found before are built by name or from files."""

import json
from pathlib import Path

import pytest
import torch

from nni.nas.hub.pytorch import (
    DARTS,
    MobileNetV3Space,
    NasBench201,
    ProxylessNAS,
    ShuffleNetSpace,
)
from nni.nas.hub.pytorch.searched_models import SearchedModel, SpaceWithSearchedModels

NAMES = {
    DARTS: "darts-v2",
    MobileNetV3Space: (
        "cream-014 cream-043 cream-114 cream-287 cream-481 cream-604 mobilenetv3-large-100 "
        "mobilenetv3-small-050 mobilenetv3-small-075 mobilenetv3-small-100"
    ),
    ProxylessNAS: "acenas-m1 acenas-m2 acenas-m3 proxyless-cpu proxyless-gpu proxyless-mobile",
    ShuffleNetSpace: "spos",
}


class Small(ShuffleNetSpace, label_prefix="shufflenet"):
    """Space whose network is small."""

    @classmethod
    def searched_models(cls) -> dict[str, SearchedModel]:
        sample = ShuffleNetSpace.searched_models()["spos"].sample
        return {"small": SearchedModel(50, "none", sample, {"width_mult": 0.25, "num_labels": 3})}


@pytest.mark.parametrize("space", NAMES)
def test_published_networks_are_named(space: type[SpaceWithSearchedModels]) -> None:
    assert sorted(space.searched_models()) == NAMES[space].split()


def test_network_is_fixed() -> None:
    network = Small.load_searched_model("small")

    assert network.simplify() == {}
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 3)


def test_wanted_file_of_the_weights_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"weights of 'small' are in the file 'small\.pth'"):
        Small.load_searched_model("small", pretrained=True)
    with pytest.raises(FileNotFoundError, match="cannot be downloaded"):
        Small.load_searched_model("small", pretrained=True, download=True)


@pytest.mark.parametrize("nested", [False, True])
def test_weights_are_read_from_a_path(tmp_path: Path, nested: bool) -> None:
    original = Small.load_searched_model("small").eval()
    path = tmp_path / "weights.pth"
    state = original.state_dict()
    torch.save({"state_dict": state} if nested else state, path)

    loaded = Small.load_searched_model("small", pretrained=path).eval()

    inputs = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(loaded(inputs), original(inputs))


def test_file_of_something_else_is_refused(tmp_path: Path) -> None:
    torch.save(torch.zeros(3), tmp_path / "weights.pth")

    with pytest.raises(ValueError, match="must hold a state dict, got Tensor"):
        Small.load_searched_model("small", pretrained=str(tmp_path / "weights.pth"))


def test_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="name must be one of small for Small"):
        Small.load_searched_model("large")
    with pytest.raises(ValueError, match="has no searched models"):
        NasBench201.load_searched_model("any")


def test_architecture_is_read_from_a_file(tmp_path: Path) -> None:
    sample = Small.searched_models()["small"].sample
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"sample": sample, "arguments": {"width_mult": 0.25}}))

    network = ShuffleNetSpace.load_searched_model(str(path))

    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 1000)


def test_sample_alone_is_a_file_of_an_architecture(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    path.write_text(json.dumps(Small.searched_models()["small"].sample))

    assert ShuffleNetSpace.load_searched_model(str(path)).simplify() == {}
    with pytest.raises(FileNotFoundError, match=r"'found\.pth'"):
        ShuffleNetSpace.load_searched_model(str(path), pretrained=True)


def test_file_without_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "found.json").write_text("[]")

    with pytest.raises(ValueError, match="must hold a JSON object with a sample, got list"):
        ShuffleNetSpace.load_searched_model(str(tmp_path / "found.json"))

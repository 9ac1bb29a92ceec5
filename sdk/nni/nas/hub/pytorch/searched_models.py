"""Networks that were found in a space before, and where their weights come from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nni.mutable import Sample
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.space.context import model_context


@dataclass(frozen=True, slots=True)
class SearchedModel:
    """Published network of a space: accuracy, data set, sample (None: in a file), arguments.

    Examples:
        >>> model = SearchedModel(74.14, "ImageNet", sample={"layer_1": "k3"})
        >>> model.weights_file("spos")
        'spos.pth'
    """

    accuracy: float
    """Top-1 accuracy of the published weights, in percent."""
    dataset: str
    """Data set of the accuracy."""
    sample: Sample | None = None
    """Architecture by label; None: it is in a file of the user."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the space's constructor."""

    @staticmethod
    def weights_file(name: str) -> str:
        """Return the file name of a network's weights, `<name>.pth`.

        Args:
            name: name of the network.

        Returns:
            Name of a file with a state dict, as `torch.save` writes it.
        """
        return f"{name}.pth"


class SpaceWithSearchedModels(ModelSpace):
    """Base of spaces that networks have been found in.

    Weights and some architectures are not part of this library: they are read from files that the
    user names, as there is no place to download them from.

    Examples:
        >>> from nni.nas.hub.pytorch import ShuffleNetSpace
        >>> sorted(ShuffleNetSpace.searched_models())
        ['spos']
    """

    @classmethod
    def searched_models(cls) -> dict[str, SearchedModel]:
        """Return the published networks of this space by name; by default none.

        Returns:
            Name to network; of spaces without any, none.
        """
        return {}

    @classmethod
    def load_searched_model(
        cls,
        name: str,
        pretrained: bool | str | Path = False,  # noqa: FBT001, FBT002 - as specified
        download: bool = False,  # noqa: FBT001, FBT002
        progress: bool = True,  # noqa: FBT001, FBT002
    ) -> nn.Module:
        """Construct a network found in this space, fresh or with a file's weights; no download.

        Args:
            name: name of the network, or path of a JSON file with its sample, in which `sample`
                may stand beside `arguments` of the constructor.
            pretrained: path of a file with the weights. True: its name, which the error tells.
            download: whether the weights may be fetched; there is no place to fetch them from.
            progress: whether to show the progress of a download.

        Returns:
            The network; with fresh weights unless `pretrained` is a path.

        Raises:
            ValueError: the space has no network of that name, or the file has no such network.
            FileNotFoundError: the architecture or the weights are in a file that was not named.
        """
        del progress
        model = _from_file(name) if name.endswith(".json") else cls._published(name)
        with model_context(dict(model.sample or {})):
            network: nn.Module = cls(**model.arguments)
        if pretrained is False:
            return network
        if pretrained is True:
            wanted = model.weights_file(Path(name).stem)
            raise FileNotFoundError(
                f"weights of {name!r} are in the file {wanted!r}, which is not part of nni"
                f"{' and cannot be downloaded' if download else ''}; get it from its authors and "
                f"pass its path: load_searched_model({name!r}, pretrained='.../{wanted}')"
            )
        network.load_state_dict(_weights(Path(pretrained)))
        return network

    @classmethod
    def _published(cls, name: str) -> SearchedModel:
        known = cls.searched_models()
        if name not in known:
            raise ValueError(
                f"name must be one of {', '.join(sorted(known)) or 'none'} for {cls.__name__}, or "
                f"the path of a JSON file with a sample, got {name!r}"
            )
        if known[name].sample is None:
            raise FileNotFoundError(
                f"the architecture of {name!r} ({known[name].accuracy} % on "
                f"{known[name].dataset}) is in the file '{name}.json', which is not part of nni; "
                f"write its sample there and pass the path: "
                f"load_searched_model('.../{name}.json')"
            )
        return known[name]


def _from_file(path: str) -> SearchedModel:
    content = json.loads(Path(path).read_text("utf-8"))
    if not isinstance(content, dict):
        raise ValueError(  # noqa: TRY004 - of a file, not of an argument
            f"{path} must hold a JSON object with a sample, got {type(content).__name__}"
        )
    sample, arguments = content, {}
    if isinstance(content.get("sample"), dict):
        sample, arguments = content["sample"], content.get("arguments", {})
    return SearchedModel(float("nan"), "unknown", sample, arguments)


def _weights(path: Path) -> dict[str, Any]:
    """Load the state dict of a file, or of its entry `state_dict`; raise if it is not one."""
    loaded = torch.load(path, map_location="cpu", weights_only=True)
    state = loaded.get("state_dict", loaded) if isinstance(loaded, dict) else loaded
    if not isinstance(state, dict):
        raise ValueError(  # noqa: TRY004 - of a file, not of an argument
            f"{path} must hold a state dict, got {type(state).__name__}"
        )
    return state

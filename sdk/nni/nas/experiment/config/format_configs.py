"""Configurations of model formats, chosen by name."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator

from nni.experiment.config.base import Integer
from nni.nas.experiment.config.engine_configs import NamedConfig


class ModelFormatConfig(NamedConfig):
    """Base of configurations of model formats.

    Args:
        **fields: `name`, and the fields of the format that it names; `keep` is another name of
            `raw`.

    Raises:
        ValueError: no format has this name.

    Examples:
        >>> from nni.nas.experiment.config import ModelFormatConfig
        >>> ModelFormatConfig(name="simplified").to_dict()
        {'name': 'simplified'}
    """

    kind: ClassVar[str] = "model format"
    family: ClassVar[dict[str, type[NamedConfig]]] = {}

    name: str
    """Name of the format."""


class GraphModelFormatConfig(ModelFormatConfig):
    """Configuration of the graph format: models as graphs, of which code can be written.

    Examples:
        >>> from nni.nas.experiment.config import GraphModelFormatConfig
        >>> GraphModelFormatConfig(dummy_input=[1, 3, 32, 32]).to_dict()
        {'name': 'graph', 'dummyInput': [1, 3, 32, 32]}
    """

    name: Literal["graph"] = "graph"
    """Name of the format."""
    dummy_input: list[Integer] | None = None
    """Shape of an input, from which the shapes of all tensors follow; not given: no shapes."""


class SimplifiedModelFormatConfig(ModelFormatConfig):
    """Configuration of the simplified format: how to construct the model, and its choices.

    Examples:
        >>> from nni.nas.experiment.config import SimplifiedModelFormatConfig
        >>> SimplifiedModelFormatConfig().name
        'simplified'
    """

    name: Literal["simplified"] = "simplified"
    """Name of the format."""


def _without_alias(name: object) -> object:
    return "raw" if name == "keep" else name


class RawModelFormatConfig(ModelFormatConfig):
    """Configuration of the raw format: the live model with its weights, in this process only.

    Examples:
        >>> from nni.nas.experiment.config import RawModelFormatConfig
        >>> RawModelFormatConfig().name
        'raw'
    """

    name: Annotated[Literal["raw"], BeforeValidator(_without_alias)] = "raw"
    """Name of the format; `keep` is another name of it."""


ModelFormatConfig.family.update(
    graph=GraphModelFormatConfig,
    simplified=SimplifiedModelFormatConfig,
    raw=RawModelFormatConfig,
    keep=RawModelFormatConfig,
)

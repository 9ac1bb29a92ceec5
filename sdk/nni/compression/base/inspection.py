"""Views of a model that configuration and compressors need."""

from collections.abc import Mapping, Sequence

from torch import nn

from nni.compression.config.legacy import canonical
from nni.compression.config.selection import ModuleInfo


def module_infos(model: nn.Module) -> dict[str, ModuleInfo]:
    """Return type and parameter names of every module except the root, by dotted name.

    Args:
        model: an unwrapped model.

    Examples:
        >>> from torch import nn
        >>> module_infos(nn.Sequential(nn.ReLU()))
        {'0': ModuleInfo(type_name='ReLU', parameters=frozenset())}
    """
    return {
        name: ModuleInfo(
            type_name=type(module).__name__,
            parameters=frozenset(own for own, _ in module.named_parameters(recurse=False)),
        )
        for name, module in model.named_modules()
        if name
    }


def config_list_canonical(
    model: nn.Module, config_list: Sequence[Mapping[str, object]]
) -> list[dict[str, object]]:
    """Check a list of NNI 2.x; return entries that name each selected module once; last wins.

    Args:
        model: an unwrapped model.
        config_list: entries of NNI 2.x; not changed.

    Returns:
        Entries as `nni.compression.config.legacy.canonical` describes them.

    Raises:
        ConfigListError: an entry breaks a rule.

    Examples:
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
        >>> config_list_canonical(model, [{"op_types": ["default"], "sparsity": 0.5}])
        [{'op_names': ['0'], 'total_sparsity': 0.5}]
    """
    return canonical(config_list, module_infos(model))

"""Generator of search spaces over compression algorithms."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nni.compression.experiment.flat_keys import (
    PRUNER_NAMES,
    QUANTIZER_NAMES,
    argument_name,
    entry_prefix,
    selection_keys,
)

ALGORITHM: Final = "algorithm_name"
"""Hyperparameter that chooses the algorithm."""
QUANTIZATION: Final = "quantization_name"
"""Hyperparameter that chooses a quantizer for what a pruner leaves."""
NO_QUANTIZATION: Final = "none"
"""Option of `QUANTIZATION` that leaves the pruned model as it is."""

Entry = Mapping[str, Any]


class AutoCompressionSearchSpaceGenerator:
    """Builder of a search space whose options are compression algorithms.

    Each algorithm has a `config_list`, of which all values except `op_types`, `op_names` and
    `quant_types` may be search-space nodes, `{"_type": ..., "_value": [...]}`.

    Examples:
        >>> from nni.compression.experiment import AutoCompressionSearchSpaceGenerator
        >>> generator = AutoCompressionSearchSpaceGenerator()
        >>> sparsity = {"_type": "uniform", "_value": [0.01, 0.99]}
        >>> generator.add_config("level", [{"sparsity": sparsity, "op_types": ["default"]}])
        >>> generator.dumps()["algorithm_name"]["_value"][0]
        {'_name': 'level', 'config_list::default::::sparsity': {'_type': 'uniform',
        '_value': [0.01, 0.99]}}
    """

    def __init__(self) -> None:
        self._algorithms: list[dict[str, Any]] = []
        self._quantizations: list[dict[str, Any]] = []

    def add_config(
        self,
        algorithm_name: str,
        config_list: Sequence[Entry],
        **algo_kwargs: Any,  # noqa: ANN401 - JSON values and nodes
    ) -> None:
        """Add an algorithm, once each, with its entries and arguments as an option.

        Args:
            algorithm_name: a pruner: level, slim, l1, l2, fpgm, taylorfo, apoz, mean_activation,
                admm; or a quantizer: naive, qat, dorefa, bnn, lsq.
            config_list: entries of the algorithm, with nodes; not changed.
            algo_kwargs: arguments of the algorithm besides model, configuration and callbacks, such
                as `training_batches`; with nodes.

        Raises:
            ValueError: the algorithm is unknown or was added before, or two entries have the same
                `op_types` and `op_names`.
        """
        known = (*PRUNER_NAMES, *QUANTIZER_NAMES)
        option = _option(algorithm_name, known, config_list, algo_kwargs)
        _add(self._algorithms, option)

    def add_quantization(
        self,
        algorithm_name: str | None,
        config_list: Sequence[Entry] = (),
        **algo_kwargs: Any,  # noqa: ANN401 - JSON values and nodes
    ) -> None:
        """Add a quantizer, or None for no quantization, as an option after a pruner.

        Args:
            algorithm_name: naive, qat, dorefa, bnn or lsq; None for the option to leave the pruned
                model as it is.
            config_list: entries of the quantizer, with nodes; not changed.
            algo_kwargs: arguments of the quantizer; with nodes.

        Raises:
            ValueError: as `add_config`.

        Examples:
            >>> from nni.compression.experiment import AutoCompressionSearchSpaceGenerator
            >>> generator = AutoCompressionSearchSpaceGenerator()
            >>> generator.add_quantization(None)
            >>> bits = {"_type": "choice", "_value": [4, 8]}
            >>> entry = {"quant_types": ["weight"], "quant_bits": bits, "op_types": ["Conv2d"]}
            >>> generator.add_quantization("qat", [entry])
        """
        if algorithm_name is None:
            _add(self._quantizations, {"_name": NO_QUANTIZATION})
        else:
            option = _option(algorithm_name, QUANTIZER_NAMES, config_list, algo_kwargs)
            _add(self._quantizations, option)

    def dumps(self) -> dict[str, Any]:
        """Return a copy of the search space as a dict; raise ValueError if it is empty.

        Returns:
            A dict for `ExperimentConfig.search_space` or `nni.hpo.optimize`.

        Raises:
            ValueError: no algorithm was added.
        """
        if not self._algorithms:
            raise ValueError("the search space is empty: call add_config first")
        space = {ALGORITHM: _choice(self._algorithms)}
        if self._quantizations:
            space[QUANTIZATION] = _choice(self._quantizations)
        return copy.deepcopy(space)

    def loads(self, search_space: Mapping[str, Any]) -> None:
        """Replace all algorithms by those of a search space, which are checked and copied.

        Args:
            search_space: what `dumps` returned.

        Raises:
            ValueError: it is no search space of a generator.

        Examples:
            >>> from nni.compression.experiment import AutoCompressionSearchSpaceGenerator
            >>> generator = AutoCompressionSearchSpaceGenerator()
            >>> generator.add_config("l1", [{"sparsity": 0.5, "op_types": ["Conv2d"]}])
            >>> other = AutoCompressionSearchSpaceGenerator()
            >>> other.loads(generator.dumps())
            >>> other.dumps() == generator.dumps()
            True
        """
        algorithms = _options(search_space, ALGORITHM, (*PRUNER_NAMES, *QUANTIZER_NAMES))
        quantizations = (
            _options(search_space, QUANTIZATION, (NO_QUANTIZATION, *QUANTIZER_NAMES))
            if QUANTIZATION in search_space
            else []
        )
        self._algorithms, self._quantizations = algorithms, quantizations


def _option(
    name: str, known: Sequence[str], config_list: Sequence[Entry], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    if name not in known:
        raise ValueError(f"algorithm_name must be one of {', '.join(known)}, got {name!r}")
    option: dict[str, Any] = {"_name": name}
    prefixes: dict[str, int] = {}
    for index, entry in enumerate(config_list):
        prefix = entry_prefix(name, entry)
        first = prefixes.setdefault(prefix, index)
        if first != index:
            keys = " and ".join(selection_keys(name))
            raise ValueError(
                f"config_list[{first}] and config_list[{index}] of {name} have the same {keys}; "
                "make one entry of them"
            )
        for key, value in entry.items():
            if key not in selection_keys(name):
                option[prefix + key] = _node(value)
    for key, value in arguments.items():
        option[argument_name(key)] = _node(value)
    return option


def _node(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a JSON value
    """Return a search-space node: a given one, a value as only option, a dict as only branch."""
    if not isinstance(value, Mapping):
        return _choice([value])
    if "_type" in value:
        return copy.deepcopy(dict(value))
    return _choice([{"_name": "all", **{key: _node(one) for key, one in value.items()}}])


def _choice(options: Sequence[Any]) -> dict[str, Any]:
    return {"_type": "choice", "_value": list(options)}


def _add(options: list[dict[str, Any]], option: dict[str, Any]) -> None:
    if any(one["_name"] == option["_name"] for one in options):
        raise ValueError(
            f"{option['_name']} was added before; put what differs into search-space nodes"
        )
    options.append(option)


def _options(space: Mapping[str, Any], key: str, known: Sequence[str]) -> list[dict[str, Any]]:
    node = space.get(key)
    options = node.get("_value") if isinstance(node, Mapping) else None
    if not isinstance(options, list) or not options:
        raise ValueError(f"the search space must have a choice {key!r}, got {node!r:.200}")
    for option in options:
        name = option.get("_name") if isinstance(option, Mapping) else None
        if name not in known:
            raise ValueError(f"{key} must have options of {', '.join(known)}, got {name!r}")
    found: list[dict[str, Any]] = json.loads(json.dumps(options))
    return found

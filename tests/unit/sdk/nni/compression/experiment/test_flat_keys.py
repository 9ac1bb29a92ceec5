import pytest

from nni.compression.experiment.flat_keys import (
    PRUNER_NAMES,
    QUANTIZER_NAMES,
    argument_name,
    entry_prefix,
    parsed,
    selection_keys,
)
from nni.compression.pruning.named_pruners import PRUNERS


def test_all_pruners_with_a_name_can_be_searched() -> None:
    assert set(PRUNER_NAMES) == set(PRUNERS)


@pytest.mark.parametrize("algorithm", ["level", "qat"])
def test_an_entry_is_read_back(algorithm: str) -> None:
    chosen = {"op_types": ["Conv2d", "Linear"], "op_names": ["a.b", "c"]}
    if algorithm in QUANTIZER_NAMES:
        chosen = {"quant_types": ["weight", "output"], **chosen}
    prefix = entry_prefix(algorithm, chosen)

    config_list, arguments = parsed(algorithm, {f"{prefix}key": 1, argument_name("scale"): 0.5})

    assert list(chosen) == list(selection_keys(algorithm))
    assert config_list == [{**chosen, "key": 1}]
    assert arguments == {"scale": 0.5}


@pytest.mark.claim("compression", 86)
def test_empty_selections_are_left_out() -> None:
    by_types, _ = parsed("qat", {"config_list::weight::Conv2d::::quant_bits": 8})
    by_names, _ = parsed("level", {"config_list::::a:b::sparsity": 0.5})

    assert by_types == [{"quant_types": ["weight"], "op_types": ["Conv2d"], "quant_bits": 8}]
    assert by_names == [{"op_names": ["a", "b"], "sparsity": 0.5}]


def test_entries_keep_their_order_and_dicts_lose_the_name_of_their_branch() -> None:
    values = {
        "config_list::Linear::::sparsity": 0.8,
        "config_list::::0::exclude": True,
        "config_list::Linear::::rho": 0.1,
        "parameter::quant_bits": {"_name": "all", "weight": 8},
    }

    config_list, arguments = parsed("level", values)

    assert config_list == [
        {"op_types": ["Linear"], "sparsity": 0.8, "rho": 0.1},
        {"op_names": ["0"], "exclude": True},
    ]
    assert arguments == {"quant_bits": {"weight": 8}}


@pytest.mark.parametrize("name", ["lr", "config_list::a::b", "parameter::a::b", "other::a"])
def test_other_hyperparameters_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' is no hyperparameter of level"):
        parsed("level", {name: 1})

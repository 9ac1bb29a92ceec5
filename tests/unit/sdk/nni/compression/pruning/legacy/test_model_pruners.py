from pathlib import Path

import pytest

from nni.compression.pruning.legacy.model_pruners import (
    LegacyNetAdaptPruner,
    LegacyTransformerHeadPruner,
)
from tests.unit.sdk.nni.compression.attention_model import encoder, names_of
from tests.unit.sdk.nni.compression.pruning.legacy.models import CONVS, net

pytestmark = pytest.mark.filterwarnings("ignore:.*of an older NNI:DeprecationWarning")


def test_head_pruning_returns_the_model() -> None:
    model = encoder()
    config_list: list[dict[str, object]] = [{"op_types": ["Linear"], "sparsity": 0.5}]
    pruner = LegacyTransformerHeadPruner(model, config_list, 2, names_of())

    assert pruner.compress() is model
    assert [len(heads) for heads in pruner.pruned_heads.values()] == [2, 2]


def test_a_search_returns_the_model(tmp_path: Path) -> None:
    model = net()

    pruner = LegacyNetAdaptPruner(
        model,
        CONVS,
        lambda _: None,
        lambda _: 1.0,
        sparsity_per_iteration=0.25,
        experiment_data_dir=tmp_path,
    )

    assert pruner.compress() is model

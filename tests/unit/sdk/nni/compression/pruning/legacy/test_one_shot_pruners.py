from typing import Any

import pytest

from nni.compression.pruning.legacy.one_shot_pruners import ONE_SHOT, one_shot_pruner
from tests.unit.sdk.nni.compression.pruning.legacy.models import (
    CONVS,
    NORMS,
    Trainer,
    images,
    loss,
    net,
    sgd,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*of an older NNI:DeprecationWarning")


@pytest.mark.parametrize("name", ONE_SHOT)
def test_each_algorithm_is_known_by_its_name(name: str) -> None:
    model = net()
    callbacks: dict[str, Any] = {"optimizer": sgd(model), "trainer": Trainer(), "criterion": loss}
    trained = name in {"slim", "taylorfo", "apoz", "mean_activation"}

    pruner = one_shot_pruner(
        model, NORMS if name == "slim" else CONVS, name, **(callbacks if trained else {})
    )

    assert type(pruner) is ONE_SHOT[name]
    assert pruner.compress() is model


@pytest.mark.claim("compression", 49)
def test_single_weights_do_not_depend_on_each_other() -> None:
    with pytest.raises(ValueError, match="'level' has no channels for dependency_aware"):
        one_shot_pruner(net(), CONVS, "level", dependency_aware=True, dummy_input=images())
    with pytest.raises(ValueError, match="pruning_algorithm must be one of level, slim, l1"):
        one_shot_pruner(net(), CONVS, "agp")

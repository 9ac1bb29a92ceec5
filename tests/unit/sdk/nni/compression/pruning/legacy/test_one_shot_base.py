import pytest
from torch import nn

from nni.compression.base import ConfigListError, ModuleWrapper
from nni.compression.pruning.legacy.one_shot_base import mode_of
from nni.compression.pruning.legacy.one_shot_weight_pruners import OneShotL1FilterPruner
from tests.unit.sdk.nni.compression.pruning.legacy.models import CONVS, net

pytestmark = pytest.mark.filterwarnings("ignore:.*of an older NNI:DeprecationWarning")


def test_compress_returns_the_model_and_wrappers_are_a_list() -> None:
    model = net()
    pruner = OneShotL1FilterPruner(model, CONVS)

    assert pruner.compress() is model
    assert [one.module_name for one in pruner.get_modules_wrapper()] == ["0", "3"]
    assert isinstance(model[0], ModuleWrapper)
    pruner._unwrap_model()
    assert isinstance(model[0], nn.Conv2d)


def test_masks_are_updated_from_the_weights_as_they_are() -> None:
    pruner = OneShotL1FilterPruner(net(), CONVS)

    pruner.update_mask()

    assert pruner.get_pruned_weights() == {"0": (2, 4), "3": (3, 6)}


@pytest.mark.claim("compression", 5)
def test_ratios_of_nothing_and_everything_are_refused() -> None:
    for ratio in (0.0, 1.0):
        model = net()
        with pytest.raises(ConfigListError, match=r"in \(0, 1\)"):
            OneShotL1FilterPruner(model, [{"op_types": ["Conv2d"], "sparsity": ratio}])
        assert isinstance(model[0], nn.Conv2d)


def test_the_flag_of_dependent_layers_is_a_mode() -> None:
    assert (mode_of(dependency_aware=True), mode_of(dependency_aware=False)) == (
        "dependency_aware", "normal"
    )  # fmt: skip

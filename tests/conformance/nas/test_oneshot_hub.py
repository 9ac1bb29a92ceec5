"""Spaces of the hub as supernets: what strategies accept, and what they refuse with a reason."""

from collections.abc import Callable

import pytest
import torch

from nni.nas.hub import pytorch as hub
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.strategy import oneshot

FITTING: dict[str, Callable[[], ModelSpace]] = {
    "DARTS": lambda: hub.DARTS(width=4, num_cells=3),
    "searched depth": lambda: hub.NDS(
        ["skip_connect", "conv_1x1"], num_nodes_per_cell=1, width=4, num_cells=(6, 8)
    ),
    "NAS-Bench-201": lambda: hub.NasBench201(stem_out_channels=4, num_modules_per_stack=1),
}


def supernet(strategy: oneshot.OneShotStrategy, space: ModelSpace) -> torch.Size:
    """Return the size of the output of the supernet for one image."""
    with torch.no_grad():
        output: torch.Tensor = strategy.mutate_model(space).eval()(torch.zeros(1, 3, 8, 8))
    return output.shape


@pytest.mark.parametrize("name", FITTING)
@pytest.mark.parametrize("kind", [oneshot.DARTS, oneshot.RandomOneShot, oneshot.ENAS])
def test_supernet_computes(kind: Callable[[], oneshot.OneShotStrategy], name: str) -> None:
    assert supernet(kind(), FITTING[name]()) == (1, 10)


def test_depths_that_change_sizes_are_refused_by_a_mixture() -> None:
    space = hub.DARTS(width=4, num_cells=(3, 6))

    with pytest.raises(TypeError, match="keep the sizes of their input"):
        supernet(oneshot.DARTS(), space)


def test_depths_that_change_sizes_are_sampled() -> None:
    space = hub.DARTS(width=4, num_cells=(3, 6))

    assert supernet(oneshot.RandomOneShot(), space) == (1, 10)


@pytest.mark.parametrize("kind", [oneshot.DARTS, oneshot.GumbelDARTS])
def test_cells_of_loose_ends_are_refused_by_a_mixture(
    kind: Callable[[], oneshot.OneShotStrategy],
) -> None:
    with pytest.raises(TypeError, match="merge_op='all', got 'loose_end'"):
        kind().mutate_model(hub.NASNet(width=4, num_cells=3))


@pytest.mark.parametrize("kind", [oneshot.RandomOneShot, oneshot.ENAS])
def test_sizes_that_depend_on_all_loose_ends_are_refused(
    kind: Callable[[], oneshot.OneShotStrategy],
) -> None:
    with pytest.raises(TypeError, match="combinations of values"):
        kind().mutate_model(hub.NASNet(width=4, num_cells=3))


@pytest.mark.parametrize(
    "kind", [oneshot.DARTS, oneshot.Proxyless, oneshot.RandomOneShot, oneshot.ENAS]
)
def test_cells_of_nasbench101_are_refused(kind: Callable[[], oneshot.OneShotStrategy]) -> None:
    with pytest.raises(TypeError, match=r"NasBench101Cell at 'features.1' is not supported"):
        kind().mutate_model(hub.NasBench101())

import subprocess
import sys
from itertools import pairwise

import pytest

from nni.compression.scheduling.growth import (
    agp_part,
    agp_part_of_epoch,
    linear_part,
    lottery_ratio,
    ratio_of_rest,
)


@pytest.mark.claim("compression", 32)
def test_agp_by_epoch_with_an_update_after_each() -> None:
    ratios = [round(0.8 * agp_part_of_epoch(epoch, 10, 1), 4) for epoch in range(10)]

    assert ratios == [0, 0.2381, 0.4236, 0.5630, 0.6628, 0.7298, 0.7704, 0.7912, 0.7989, 0.8]


@pytest.mark.claim("compression", 33)
def test_agp_by_epoch_with_an_update_after_every_second_one() -> None:
    ratios = [round(0.8 * agp_part_of_epoch(epoch, 10, 2), 4) for epoch in range(0, 10, 2)]

    assert ratios == [0, 0.4625, 0.7, 0.7875, 0.8]


def test_one_epoch_reaches_the_final_ratio_at_once() -> None:
    assert agp_part_of_epoch(0, 1, 1) == 1


@pytest.mark.claim("compression", 34)
def test_agp_in_ten_iterations() -> None:
    ratios = [round(0.8 * agp_part(iteration, 10), 4) for iteration in range(11)]

    assert ratios == [
        *(0, 0.2168, 0.3904, 0.5256, 0.6272, 0.7, 0.7488, 0.7784, 0.7936, 0.7992, 0.8)
    ]


@pytest.mark.claim("compression", 35)
def test_linear_in_five_iterations() -> None:
    ratios = [round(0.5 * linear_part(iteration, 5), 4) for iteration in range(6)]

    assert ratios == [0, 0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.claim("compression", 36)
def test_lottery_masks_the_same_part_of_the_rest_in_each_iteration() -> None:
    ratios = [lottery_ratio(0.8, iteration, 5) for iteration in range(6)]

    assert [round(ratio, 4) for ratio in ratios[1:]] == [0.2752, 0.4747, 0.6193, 0.7241, 0.8]
    rests = [(1 - later) / (1 - earlier) for earlier, later in pairwise(ratios)]
    assert rests == pytest.approx([0.2**0.2] * 5)


@pytest.mark.claim("compression", 38)
def test_what_is_removed_already_counts() -> None:
    assert ratio_of_rest(0.8, 0.7) == pytest.approx(1 / 3)
    assert ratio_of_rest(0.7, 0.0) == 0.7
    assert ratio_of_rest(0.5, 0.6) == 0


def test_the_functions_are_imported_without_torch() -> None:
    program = "import sys, nni.compression.scheduling.growth; assert 'torch' not in sys.modules"

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0

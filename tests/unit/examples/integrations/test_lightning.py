"""The example trains, and goes on from its checkpoint when it is run again."""

import re

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


@pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning")
# Lightning 2.6 calls functions of torch 2.13 that are deprecated.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_second_run_goes_on_from_the_checkpoint_of_the_first(scripts: Scripts) -> None:
    scripts("integrations/lightning/train.py", 1)
    printed = scripts("integrations/lightning/train.py", 3)

    assert printed.count("Intermediate result") == 2
    last = re.search(r"accuracy after 3 epochs: ([\d.]+)", printed)
    assert last is not None
    assert float(last[1]) > 0.6  # guessing gives 0.1

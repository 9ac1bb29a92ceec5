"""The example trains, and goes on from its checkpoint when it is run again."""

import re

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


# Keras 3.15 saves tensors of torch 2.13 by an interface that numpy 2 deprecates.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_second_run_goes_on_from_the_checkpoint_of_the_first(scripts: Scripts) -> None:
    pytest.importorskip("keras", reason="run by .ci/integrations")
    scripts("integrations/keras/train.py", 1)
    printed = scripts("integrations/keras/train.py", 3)

    assert printed.count("Intermediate result") == 2
    last = re.search(r"accuracy after 3 epochs: ([\d.]+)", printed)
    assert last is not None
    assert float(last[1]) > 0.6  # guessing gives 0.1

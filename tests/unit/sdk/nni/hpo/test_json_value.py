"""JSON forms of random generators."""

import json
from random import Random

from nni.hpo.json_value import random_state, restore_random


def test_restored_generator_goes_on_alike() -> None:
    rng, other = Random(1), Random(2)
    rng.gauss(0, 1)  # leaves half of a pair behind
    state = json.loads(json.dumps(random_state(rng)))

    restore_random(other, state)

    assert [other.gauss(0, 1) for _ in range(3)] == [rng.gauss(0, 1) for _ in range(3)]
    assert other.random() == rng.random()

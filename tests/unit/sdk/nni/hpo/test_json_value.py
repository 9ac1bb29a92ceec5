"""JSON forms of random generators."""

import json
from random import Random

import numpy as np
import pytest

from nni.hpo.json_value import plain_value, random_state, restore_random


def test_restored_generator_goes_on_alike() -> None:
    rng, other = Random(1), Random(2)
    rng.gauss(0, 1)  # leaves half of a pair behind
    state = json.loads(json.dumps(random_state(rng)))

    restore_random(other, state)

    assert [other.gauss(0, 1) for _ in range(3)] == [rng.gauss(0, 1) for _ in range(3)]
    assert other.random() == rng.random()


@pytest.mark.parametrize(
    ("value", "plain"), [(np.float64(0.5), 0.5), (np.int64(3), 3), (np.array([[1, 2]]), [[1, 2]])]
)
def test_numpy_values_are_written_as_plain_ones(value: object, plain: object) -> None:
    assert json.loads(json.dumps({"value": value}, default=plain_value)) == {"value": plain}


def test_other_objects_are_refused_with_their_type() -> None:
    with pytest.raises(TypeError, match="parameters must be JSON-like, got object: <object"):
        json.dumps(object(), default=plain_value)

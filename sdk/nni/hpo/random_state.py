"""A `random.Random` as JSON, for algorithms that can be put aside."""

from random import Random

from nni.hpo.json_value import JsonValue


def random_state(rng: Random) -> list[JsonValue]:
    """Return what `restore_random` needs to make another generator go on alike, as JSON."""
    version, internal, gauss = rng.getstate()
    return [version, list(internal), gauss]


def restore_random(rng: Random, state: list[JsonValue]) -> None:
    """Make `rng` go on where the generator of `random_state` stood."""
    version, internal, gauss = state
    rng.setstate((version, tuple(internal), gauss))

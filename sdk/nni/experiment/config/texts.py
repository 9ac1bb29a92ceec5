"""Rule of all texts of a configuration, apart from the libraries that read and check the fields."""

from __future__ import annotations

from nni.experiment.errors import ConfigError, Problem
from nni_wire.texts import REMEDY, RULE, broken_text


def check_texts(data: object, place: str = "") -> None:
    """Raise ConfigError if a text in the data has half of a surrogate pair, which UTF-8 has not.

    The error shows this character only: the text may be a secret.

    Raises:
        ConfigError: it names the path of the text.
    """
    broken = broken_text(data, place)
    if broken is not None:
        raise ConfigError([Problem(broken.place or "the text", RULE, broken.character, REMEDY)])

"""Secrets inside of texts: passwords of addresses, and values that are assigned to secret names."""

import re
from typing import Final

from svc_manager.converters.secret_names import names_secret, shows_password

MASK: Final = "******"
"""What is shown in place of a secret."""
_MOST_NAMES: Final = 5_000
"""Names that are looked at in one configuration: some 15 ms, and texts are masked in one turn."""
_MOST_CHARACTERS: Final = 300_000
"""Characters of texts with such names that are searched in one configuration: 30 ms at worst."""
_SIGNS: Final = ("=", ":", "--")
"""Without one of them a text assigns no value."""
_NAME: Final = re.compile(
    r"""(?<![\w.-])
    (?:--(?P<option>[^\W\d_][\w.-]*+)\s++(?!-)
    |(?P<name>-{0,2}[^\W\d][\w.-]*+)["']?\s{0,3}(?::=|[=:])\s{0,3})""",
    re.VERBOSE,
)
"""What a value follows in `NAME=value`, `name: value`, `"name": "value"` and `--name value`."""
_VALUE: Final = re.compile(
    r"""(?:(?:Bearer|Basic|Token)\s+)?
    (?:"(?:[^"\\]|\\.)*+"?|'[^']*+'?|[^\s"'&;|]++)++""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_REFERENCE: Final = re.compile(r"[\"']?\$(?:\w+|\{\w+\})[\"']?")
"""A variable of the shell, whose value is elsewhere: `$TOKEN`."""


class TextMask:
    """Masks the secrets in the texts of one configuration, one text after the other.

    Example:
        >>> TextMask()("API_KEY=abc python3 train.py --epochs=3")
        'API_KEY=****** python3 train.py --epochs=3'
    """

    def __init__(self) -> None:
        self._left_names = _MOST_NAMES
        self._left_characters = _MOST_CHARACTERS

    def __call__(self, text: str) -> str:
        """Return the text, the values of its secret names replaced by `MASK`.

        A text that shows an address with a password is masked as a whole, and so are those in which
        more names are assigned to than are looked at, or which are too long.
        """
        if not any(sign in text for sign in _SIGNS):
            return text
        self._left_characters -= len(text)
        if self._left_characters < 0 or shows_password(text):
            return MASK
        parts = []
        shown = position = 0
        while found := _NAME.search(text, position):
            self._left_names -= 1
            if self._left_names < 0:
                return MASK
            position = found.end()
            if not names_secret(found["name"] or found["option"]):
                continue
            if value := _VALUE.match(text, position):
                position = value.end()
                if not _REFERENCE.fullmatch(value[0]):
                    parts += [text[shown : value.start()], MASK]
                    shown = position
        return "".join([*parts, text[shown:]])

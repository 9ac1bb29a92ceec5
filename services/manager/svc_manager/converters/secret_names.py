"""Names of fields whose values are secrets, in any spelling, and values that show a password."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
"""One word of a name in camelCase, snake_case or kebab-case; digits separate words, too."""
_LONGEST_NAME: Final = 256
"""Characters of a name that is looked at. A longer one counts as that of a secret."""
_SECRET_WORDS: Final = frozenset(
    {
        *("auth", "authn", "authorization", "authz", "bearer", "cookie", "cookies", "cred"),
        *("creds", "dsn", "jwt"),
        *("oauth", "otp", "pass", "passwd", "password", "pat", "pgpass", "pin", "pw", "pwd", "sas"),
        *("signature", "totp", "userpass"),
    }
)
_SECRET_PARTS: Final = (
    *("accesskey", "accountkey", "apikey", "authkey", "clientkey", "connectionstring", "connstr"),
    *("credential", "encryptionkey", "hostkey", "licensekey", "masterkey", "passcode"),
    *("passphrase", "passwd", "password", "privatekey", "privkey", "secret", "servicekey"),
    *("sessionid", "sessionkey", "sharedkey", "signingkey", "sshkey", "subscriptionkey", "webhook"),
    *("anthropickey", "clearmlkey", "cometkey", "dockerconfigjson", "huggingfacekey", "mlflowkey"),
    *("neptunekey", "openaikey", "wandbkey"),
    # Addresses that usually have a password in them.
    *("brokeruri", "brokerurl", "databaseuri", "databaseurl", "dburi", "dburl", "mongouri"),
    *("mongourl", "redisuri", "redisurl"),
)
"""Parts of a name without its separators: `wandb_api_key` and `WANDBAPIKEY` hold `apikey`."""
_ANY_PART: Final = re.compile("|".join(_SECRET_PARTS))
"""Any of them: one search, since configurations have 10^4 names and are masked in one turn."""
_TOKEN: Final = "token"  # noqa: S105 - a word
_POLICY: Final = "policy"
"""Last word of names such as `hostKeyPolicy`, whose values are choices."""
_COUNTS: Final = frozenset({"max", "min", "n", "new", "num", "number", "of", "total"})
"""Words before `tokens` that make it a number of words, as in `max_tokens`."""

_PASSWORD_IN_ADDRESS: Final = re.compile(r"://[^\s/@:]{0,200}:[^\s/@]+@")
"""User and password before the host of an address, anywhere in a text. Begins with constant text,
and no part goes beyond the next address, so that the time grows with the length of the text."""


def shows_password(text: str) -> bool:
    """Return whether a text has an address with a password, as in `postgres://me:word@host`."""
    return _PASSWORD_IN_ADDRESS.search(text) is not None


def names_secret(name: str) -> bool:
    """Return whether a name has a part such as `password`, `apikey`, `token`; not `max_tokens`."""
    if len(name) > _LONGEST_NAME:
        return True
    words = _words(name)
    if words[-1:] == [_POLICY]:
        return False
    if not _SECRET_WORDS.isdisjoint(words):
        return True
    joined = "".join(words)
    if _ANY_PART.search(joined) or joined.endswith(_TOKEN):
        return True
    return _TOKEN in joined and (
        any(
            word.endswith("tokens") and not (index and words[index - 1] in _COUNTS)
            for index, word in enumerate(words)
        )
        or _TOKEN in words
    )


def variable_name(fields: Mapping[str, object]) -> str:
    """Return the name of a variable given as `{name: …, value: …}`, as pods do; empty: none is."""
    name = fields.get("name")
    return name if isinstance(name, str) and "value" in fields else ""


def is_secret_of_option(before: object, item: object) -> bool:
    """Return whether an item of a list is the secret of the one before: `["--token", "abc"]`."""
    if not (isinstance(before, str) and before.startswith("-") and names_secret(before)):
        return False
    return not (isinstance(item, str) and item.startswith("-"))  # another option


def last_word(name: str) -> str:
    """Return the last word of a field's name, in lower case: `file` of `sshKeyFile`."""
    return next(reversed(_words(name)), "")


def _words(name: str) -> list[str]:
    short = name[:_LONGEST_NAME]
    plain = short if short.isascii() else unicodedata.normalize("NFKC", short)
    return " ".join(_WORD.findall(plain)).lower().split()

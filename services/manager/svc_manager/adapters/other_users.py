"""Other people with accounts on this machine."""

import os
import pwd
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

_FIRST_HUMAN_UID: Final = 1000
"""Lower ones are of the system, as `login.defs` has it."""
_OVERFLOW_UID: Final = 65534
_NO_LOGIN: Final = frozenset({"", "false", "nologin", "sync", "halt", "shutdown", "true"})


def other_human_users(
    accounts: Iterable[pwd.struct_passwd] | None = None, own_uid: int | None = None
) -> list[str]:
    """Return names of accounts with uid >= 1000 and a login shell, except this process's own.

    Args:
        accounts: accounts of the machine; None: those that the system lists.
        own_uid: user id of this process; None: the real one.
    """
    listed = pwd.getpwall() if accounts is None else accounts
    own = os.getuid() if own_uid is None else own_uid
    return [
        account.pw_name
        for account in listed
        if account.pw_uid >= _FIRST_HUMAN_UID
        and account.pw_uid not in {own, _OVERFLOW_UID}
        and PurePath(account.pw_shell).name not in _NO_LOGIN
    ]

"""How many wrong credentials one address may show in a while; pure, the time is passed in.

Guessing a token of 256 bits is hopeless. The limit keeps those who try from filling logs, and
makes short passwords of others' making less of a risk. Credentials that were right before from
the same address are never held up, so nobody can lock others out behind a shared address; right
ones of this machine never are.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from svc_common.access.transport import is_loopback
from svc_common.errors import ResourceExhaustedError

FAILURES_ALLOWED: Final = 20
WINDOW_S: Final = 60.0
ADDRESSES_LIMIT: Final = 10_000
"""Addresses remembered; beyond, the one that failed longest ago is forgotten."""


@dataclass(slots=True)
class _Count:
    failures: int
    since_s: float


class FailureLimit:
    """Counts failures by address.

    Args:
        allowed: how many one address may have within the window.
        window_s: from the first failure on.
        addresses_limit: addresses remembered.
    """

    def __init__(
        self,
        allowed: int = FAILURES_ALLOWED,
        window_s: float = WINDOW_S,
        addresses_limit: int = ADDRESSES_LIMIT,
    ) -> None:
        self._addresses_limit = addresses_limit
        self._allowed = allowed
        self._window_s = window_s
        self._counts: OrderedDict[str, _Count] = OrderedDict()
        self._good: OrderedDict[tuple[str, str], None] = OrderedDict()

    def check(self, address: str, caller: str | None, now_s: float) -> None:
        """Return if credentials of ``address`` are looked at now.

        Args:
            address: where the call comes from, without port.
            caller: name of whom the credentials prove; None: of nobody.
            now_s: monotonic time.

        Raises:
            ResourceExhaustedError: there were too many wrong ones; says how long to wait.
        """
        count = self._counts.get(address)
        if count is None:
            return
        if caller is not None and ((address, caller) in self._good or is_loopback(address)):
            return
        waits_s = count.since_s + self._window_s - now_s
        if waits_s <= 0:
            del self._counts[address]
        elif count.failures >= self._allowed:
            raise ResourceExhaustedError(
                f"too many wrong credentials from {address or 'this address'}; "
                f"try again in {waits_s:.0f} s",
                {"retry_after_s": f"{max(1, round(waits_s))}"},
            )

    def failed(self, address: str, now_s: float) -> None:
        """Count wrong credentials."""
        count = self._counts.pop(address, None) or _Count(0, now_s)
        count.failures += 1
        self._counts[address] = count
        if len(self._counts) > self._addresses_limit:
            self._counts.popitem(last=False)

    def succeeded(self, address: str, caller: str) -> None:
        """Remember right ones."""
        self._good[address, caller] = None
        self._good.move_to_end((address, caller))
        if len(self._good) > self._addresses_limit:
            self._good.popitem(last=False)

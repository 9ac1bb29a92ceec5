"""Rate limit of wrong credentials per address; pure, the time is passed in.

Guessing a token of 256 bits is hopeless. The limit keeps attempts from filling the logs, and makes
short user-made tokens less of a risk. Credentials that were valid before from the same address are
never limited, so that no client can lock out others behind a shared address; valid ones from
loopback never are either.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from svc_common.access.transport import is_loopback
from svc_common.errors import ResourceExhaustedError

FAILURES_ALLOWED: Final = 20
WINDOW_S: Final = 60.0
ADDRESSES_LIMIT: Final = 10_000
"""Most addresses with a count; beyond it the one that failed longest ago is dropped."""


@dataclass(slots=True)
class _Count:
    failures: int
    since_s: float


class FailureLimit:
    """Limit of failed logins per address; over it, only callers that logged in from it may pass.

    Args:
        allowed: failures of one address within the window.
        window_s: length of the window in seconds, from the first failure on.
        addresses_limit: most addresses with a count.
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
        """Raise if an address failed too often; callers known by it, or valid on loopback, pass.

        Args:
            address: of the caller, without port.
            caller: name of the caller with these credentials; None: they are wrong.
            now_s: monotonic time.

        Raises:
            ResourceExhaustedError: too many failures; the message says how long to wait.
        """
        count = self._counts.get(address)
        if count is None:
            return
        if caller is not None and ((address, caller) in self._good or is_loopback(address)):
            return
        remaining_s = count.since_s + self._window_s - now_s
        if remaining_s <= 0:
            del self._counts[address]
        elif count.failures >= self._allowed:
            raise ResourceExhaustedError(
                f"too many wrong credentials from {address or 'this address'}; "
                f"try again in {remaining_s:.0f} s",
                {"retry_after_s": f"{max(1, round(remaining_s))}"},
            )

    def failed(self, address: str, now_s: float) -> None:
        """Count a failed authentication of an address; drop the oldest address beyond a limit."""
        count = self._counts.pop(address, None) or _Count(0, now_s)
        count.failures += 1
        self._counts[address] = count
        if len(self._counts) > self._addresses_limit:
            self._counts.popitem(last=False)

    def succeeded(self, address: str, caller: str) -> None:
        """Remember that a caller authenticated at an address, for `check`; no failure is reset."""
        self._good[address, caller] = None
        self._good.move_to_end((address, caller))
        if len(self._good) > self._addresses_limit:
            self._good.popitem(last=False)

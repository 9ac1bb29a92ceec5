"""Time since a child process last showed that it works."""


class Silence:
    """Timer of a child's time without a heartbeat; an interval between checks counts up to a limit.

    The time between two looks counts up to a limit only. When a container, a process group or a
    virtual machine goes on after it had been stopped, its supervisor would otherwise find every
    child silent for as long, and kill it before it can give a sign.

    Args:
        step_limit_s: most seconds that count between two looks.
    """

    def __init__(self, step_limit_s: float) -> None:
        self._step_limit_s = step_limit_s
        self._looked_s = 0.0
        self._sign_s: float | None = None
        self._silent_s = 0.0

    def at(self, now_s: float, sign_s: float | None) -> float:
        """Add the time since the last check, or reset at a new sign; return the silence in seconds.

        Args:
            now_s: time of the look.
            sign_s: time of the last sign, on the same clock; None: there was none yet. A child that
                has never given one is starting, and counts as not silent.
        """
        if sign_s is None or sign_s != self._sign_s:
            self._silent_s = 0.0
        else:
            self._silent_s += min(now_s - self._looked_s, self._step_limit_s)
        self._sign_s = sign_s
        self._looked_s = now_s
        return self._silent_s

"""Check of final results: what the built-in algorithms can learn from."""

import sys


def note_unlearnable(metric: object) -> None:
    """Write to stderr, at once, why the built-in algorithms learn nothing from a final result.

    The result itself is reported in any case: custom algorithms and searches with several
    objectives may use it.
    """
    reason = unlearnable_reason(metric)
    if reason:
        print(f"ERROR (nni) {reason}", file=sys.stderr, flush=True)  # noqa: T201 - the trial's own output


def unlearnable_reason(metric: object) -> str:
    """Return why a final result has no number for the algorithm; empty: it has one."""
    remedy = "report a number, or a dict whose key 'default' is a number"
    if isinstance(metric, dict):
        if "default" in metric:
            value = metric["default"]
            return (
                "" if _is_number(value) else _text("its key 'default' is no number", value, remedy)
            )
        if any(_is_number(value) for value in metric.values()):
            return (
                f"the final result has no key 'default', only {_short(list(metric))}: the "
                "algorithm learns nothing from this trial unless the objectives of the experiment "
                f"name these keys; {remedy}"
            )
    return "" if _is_number(metric) else _text("it is no number", metric, remedy)


def _text(rule: str, value: object, remedy: str) -> str:
    return (
        f"the algorithm learns nothing from this trial's final result: {rule}, got "
        f"{_short(value)}; {remedy}"
    )


def _short(value: object) -> str:
    return f"{value!r:.80}"


def _is_number(value: object) -> bool:
    """Return whether a value is a number and not NaN; numbers of numpy and torch are, too."""
    if isinstance(value, bool | str | bytes | dict | list | tuple) or value is None:
        return False
    try:
        number = float(value)  # type: ignore[arg-type] # whatever has `__float__`
    except (TypeError, ValueError, OverflowError):
        return isinstance(value, int)
    return number == number  # noqa: PLR0124 - NaN differs from itself; `math` costs a trial an import

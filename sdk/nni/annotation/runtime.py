"""Functions that converted code calls in a trial: `import nni.annotation.runtime as __nni__`.

The configuration is fetched once per process, when the first converted module is imported. That
is a call and no effect of importing this module, because a warm interpreter may import it long
before there is a trial.
"""

from _thread import RLock  # `threading` costs a trial another millisecond

from nni.trial.api import (
    get_current_parameter,
    get_next_parameter,
    report_final_result,
    report_intermediate_result,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = [
    "fetch",
    "is_chosen",
    "no_such_option",
    "report_final_result",
    "report_intermediate_result",
    "value",
]

_fetched: "dict[str, Any]" = {}
"""The configuration of this process's trial, once it has been fetched: at most one entry."""
_ONLY = "configuration"
_lock = RLock()


def fetch() -> None:
    """Request this trial's configuration and keep it, unless this process has it already."""
    with _lock:
        if _ONLY not in _fetched:
            given = get_current_parameter()  # the script may have asked by itself
            _fetched[_ONLY] = get_next_parameter() if given is None else given


def forget() -> None:
    """Clear the fetched parameters; for tests that run several trials in one process."""
    _fetched.clear()


def value(key: str) -> "Any":  # noqa: ANN401 - whatever the search space holds
    """Return a hyperparameter's value from this trial's configuration; raise if it has none.

    Raises:
        LookupError: the configuration has none of this name.
    """
    configuration = _fetched.get(_ONLY)
    if not isinstance(configuration, dict) or key not in configuration:
        raise LookupError(
            f"annotated name {key!r} must have a value in the configuration of the trial, which is "
            f"{configuration!r:.200}; outside an experiment run the original code, not its copy"
        )
    found = configuration[key]
    # A list is given away anew each time, as the literal in the annotation would be.
    return _copied(found) if isinstance(found, list) else found


def is_chosen(key: str, option: str) -> bool:
    """Return True if a hyperparameter's value equals this option, an expression written as text.

    Raises:
        LookupError: see `value`.
    """
    chosen = value(key)
    return isinstance(chosen, str) and chosen == option


def no_such_option(key: str) -> "NoReturn":
    """Raise LookupError: the value of a hyperparameter is none of the options in the code.

    Raises:
        LookupError: always.
    """
    raise LookupError(
        f"the value of {key!r} must be one of the options in its annotation, got {value(key)!r}"
    )


def _copied(items: "list[Any]") -> "list[Any]":
    return [_copied(item) if isinstance(item, list) else item for item in items]

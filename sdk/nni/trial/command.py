"""``nni-trial``: parameters and metrics for trials that are no Python programs.

Standard library only; `nni.trial.launcher` makes the script that stands on the PATH of a trial.
Exit codes: 0 done; 1 the key is missing, or the agent refuses; 2 wrong usage.
"""

import json
import os
import sys

from nni.errors import NniError
from nni.trial import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from nni.trial.ports import MetricType, TrialChannel

USAGE = """\
usage: nni-trial get [KEY]       print the parameters of this trial as JSON, or one of them
       nni-trial report VALUE    report an intermediate result
       nni-trial final VALUE     report the final result
       nni-trial checkpoint [STEP]
                                 say that $NNI_OUTPUT_DIR/checkpoint is complete

KEY    name of a hyperparameter; nested ones as outer/inner or outer.inner, items of a list by
       their number. Strings are printed as they are, all else as JSON.
STEP   an integer that grows as the trial makes progress; without it: one more than the last.
VALUE  a number, or any JSON value: 0.93, nan, '{"default": 0.93, "loss": 0.2}'.

Outside an experiment `get` prints {}, `checkpoint` copies ./nni-checkpoint, and the others print
what they would report.
"""
DONE, FAILED, MISUSED = 0, 1, 2
_METRICS: "dict[str, MetricType]" = {"report": "PERIODICAL", "final": "FINAL"}


class UsageError(Exception):
    """Error: the command line is wrong."""


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run an `nni-trial` command, errors printed to stderr; return its exit code.

    Args:
        arguments: what follows the command's name; None takes `sys.argv`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except UsageError as error:
        sys.stderr.write(f"nni-trial: {error}\n\n{USAGE}")
        return MISUSED
    except (LookupError, ValueError, NniError, RuntimeError) as error:
        sys.stderr.write(f"nni-trial: {error.args[0]}\n")
        return FAILED


def _run(words: "list[str]") -> int:
    command = words[0] if words else ""
    if command in {"-h", "--help", "help"}:
        sys.stdout.write(USAGE)
    elif command == "get" and len(words) <= 2:  # noqa: PLR2004 - the command and its KEY
        parameters = _channel().parameters(0)
        value = find(parameters, words[1]) if len(words) > 1 else parameters
        sys.stdout.write(f"{value if isinstance(value, str) else json.dumps(value)}\n")
    elif command == "checkpoint" and len(words) <= 2:  # noqa: PLR2004 - the command and its STEP
        return _save_checkpoint(words[1] if len(words) > 1 else None)
    elif command in _METRICS and len(words) == 2:  # noqa: PLR2004 - the command and its VALUE
        _channel().report(_METRICS[command], parse_value(words[1]))
    else:
        raise UsageError(
            "expected get [KEY], report VALUE, final VALUE or checkpoint [STEP], got "
            f"{' '.join(words) or 'nothing'}"
        )
    return DONE


def _save_checkpoint(step: str | None) -> int:
    from nni.trial.checkpoints import save_checkpoint

    try:
        number = None if step is None else int(step)
    except ValueError:
        raise UsageError(f"STEP must be an integer, got {step!r}") from None
    return DONE if save_checkpoint(number) else FAILED


def _channel() -> "TrialChannel":
    if not settings.in_experiment():
        from nni.trial.standalone import StandaloneTrialChannel

        return StandaloneTrialChannel()
    from nni.trial.channel import SocketTrialChannel

    return SocketTrialChannel(settings.required(settings.SOCKET), settings.required(settings.TOKEN))


def parse_value(text: str) -> object:
    """Parse a metric as JSON or a number; raise UsageError for other text.

    Raises:
        UsageError: the text is neither a number nor JSON.
    """
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        if "_" not in text:  # Python's own digit separator means nothing to a shell
            return float(text)
    except ValueError:
        pass
    raise UsageError(f"VALUE must be a number or JSON, got {text!r}")


def find(value: object, key: str) -> object:
    """Return the part of nested parameters that a key such as `a/b.0` names; LookupError if none.

    A name that itself contains a separator is found first: the longest that fits wins.

    Raises:
        LookupError: there is no such part; the message lists what there is.
    """
    parts = children(value)
    if key in parts:
        return parts[key]
    for end in range(len(key) - 1, 0, -1):
        if key[end] in "/." and key[:end] in parts:
            return find(parts[key[:end]], key[end + 1 :])
    available = ", ".join(parts) or "none"
    raise LookupError(f"no parameter {key!r}; there are: {available}")


def children(value: object) -> "dict[str, Any]":
    """Return the named parts of a JSON value: none if it is no object or array."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(index): part for index, part in enumerate(value)}
    return {}


def run() -> "NoReturn":
    """Run the command, flush its output, and end the process at once without clean-up."""
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # the reader of a pipe has gone
        code = code or FAILED
    os._exit(code)


if __name__ == "__main__":
    run()

"""Entry point of `nnictl`: runs a command, and turns every error into a message and a code.

Exit codes: 0 done; 2 refused before anything was started; 130 interrupted by Ctrl-C; 1 everything
else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from nni.cli.output import INTERRUPTED, OutputError, complain, discard_output, echo
from nni.cli.quick import quick_answer
from nni_wire.texts import REMEDY, RULE, broken_text

DONE: Final = 0
FAILED: Final = 1
REFUSED: Final = 2
_VERSION_FLAGS: Final = ({"-v"}, {"--version"})

_REMOVED: Final = {
    ("hello",): "copy a folder of examples/, and run: nnictl create --config config.yml",
    ("jupyter-extension",): "open the address that `nnictl webui url` prints",
    ("tensorboard",): "run: tensorboard --logdir <experiment folder>/trials",
    ("trial", "codegen"): "search architectures with nni.nas; there is no generated code",
    ("update", "debug"): "create the experiment with --debug",
}
"""First words of commands that NNI 2.x or 3.0 has, and what to do instead."""

_ALGO_OF_NNI_1: Final = "package"
"""Name of `nnictl algo` before NNI 2.0."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `nnictl` command that ``arguments`` name and return its exit code."""
    if sys.stdout is None or sys.stderr is None:  # the caller has closed them, as by `>&-`
        _open_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if set(words) in _VERSION_FLAGS:  # answered before anything is imported
        from nni.version import __version__

        sys.stdout.write(__version__ + "\n")
        return DONE
    if words[:1] == [_ALGO_OF_NNI_1]:
        sys.stderr.write("WARNING: `nnictl package` is deprecated; use `nnictl algo`\n")
        words[0] = "algo"
    refusal = _refusal(words)
    if refusal:
        complain(f"ERROR: {refusal}")
        return REFUSED
    try:
        answer = quick_answer(words)
        if answer is not None:
            echo(answer, end="")
            return DONE
        return _start_services() if words == ["up"] else _run(words)
    except KeyboardInterrupt:
        complain("Interrupted.")
        return INTERRUPTED
    except OutputError as error:
        discard_output()
        return _report(error)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        discard_output()
        return FAILED


def _refusal(words: list[str]) -> str:
    """Return why the words are refused, whichever command they name; empty: they are not."""
    broken = broken_text(words)
    if broken is not None:
        index = int(broken.place.strip("[]"))
        return f"argument {index + 1} {RULE}, got {words[index]!r}; {REMEDY}"
    for command, remedy in _REMOVED.items():
        if tuple(words[: len(command)]) == command:
            return f"`nnictl {' '.join(command)}` does not exist; {remedy}"
    return ""


def _open_streams() -> None:
    """Open closed standard streams, so that a command works; its output goes nowhere."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _run(words: list[str]) -> int:
    import typer

    from nni.cli.app import app
    from nni.experiment.errors import ExperimentError

    # Typer brings its own copy of click; this is the public way to the base of usage errors.
    usage_error = typer.BadParameter.__mro__[1]
    try:
        code = app(words, standalone_mode=False, prog_name="nnictl")
    except typer.Abort as abort:
        if isinstance(abort.__cause__, KeyboardInterrupt):
            raise abort.__cause__ from None  # typer has turned it into an error
        return FAILED
    except ExperimentError as error:
        if isinstance(error, OutputError):
            raise
        return _report(error)
    except Exception as error:  # noqa: BLE001 - rim of the process
        return _refuse_usage(error) if isinstance(error, usage_error) else _report_defect(error)
    return code if isinstance(code, int) else DONE


def _start_services() -> int:
    """Run `nnictl up` as `_run` does, but without typer."""
    from nni.cli.service_start import start_services
    from nni.experiment.errors import ExperimentError

    try:
        start_services()
    except (BrokenPipeError, OutputError):
        raise
    except ExperimentError as error:
        return _report(error)
    except Exception as error:  # noqa: BLE001 - rim of the process
        return _report_defect(error)
    return DONE


def _refuse_usage(error: Any) -> int:  # noqa: ANN401 - a class of typer that has no public name
    message = str(error.format_message())
    context = error.ctx
    if message.lstrip().startswith("Usage:") or context is None or not message:
        complain(message)
        return REFUSED
    value = _refused_value(error)
    if value and value not in message:  # pydantic names no value
        message += f", got {value}"
    message += _remedy_elsewhere(message, context.find_root().command)
    complain(f"ERROR: {message}\nSee: {context.command_path} --help")
    return REFUSED


def _remedy_elsewhere(message: str, root: Any) -> str:  # noqa: ANN401 - as above
    """Return a command of any group whose name is close to an unknown one; empty: none is."""
    import difflib
    import re

    unknown = re.fullmatch(r"No such command '(.+)'\.", message)
    if unknown is None:
        return ""
    places: dict[str, list[str]] = {}
    for name, command in root.commands.items():
        for one in getattr(command, "commands", ()):
            places.setdefault(one, []).append(f"nnictl {name} {one}")
    close = difflib.get_close_matches(unknown[1], places, n=1)
    return f" Did you mean {' or '.join(places[close[0]][:2])}?" if close else ""


def _refused_value(error: BaseException) -> str:
    """Return the `repr` of an option's value that pydantic refused; empty for other errors."""
    if error.__cause__ is None or not hasattr(error.__cause__, "errors"):
        return ""
    return repr(error.__cause__.errors()[0]["input"])


def _report(error: Exception) -> int:
    from nni.experiment.errors import ConfigError, RefusedError, WrongStateError

    complain(f"ERROR: {error}")
    refused = isinstance(error, ConfigError | RefusedError) or (
        # A port that was taken while the services looked at it.
        isinstance(error, WrongStateError) and error.facts.get("field") == "port"
    )
    return REFUSED if refused else FAILED


def _report_defect(error: Exception) -> int:
    """Append the traceback to `nnictl.log`, print its path, and return the exit code."""
    import traceback

    from nni.experiment.environment import nni_home

    path = nni_home() / "log" / "nnictl.log"
    complain(f"ERROR: {type(error).__name__}: {error}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(error))
        sys.stderr.write(f"This is a defect of nnictl; the traceback is in {path}\n")
    except OSError:
        traceback.print_exception(error)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())

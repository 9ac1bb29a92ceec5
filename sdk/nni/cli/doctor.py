"""`nnictl doctor`: diagnosis of this installation, with remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Final

import typer

from nni.cli.diagnosis.finding import Finding
from nni.cli.listing import Output, write_listing
from nni.cli.options import Json
from nni.cli.output import Messages


def register(app: typer.Typer) -> None:
    """Add the command `doctor` to ``app``."""
    app.command("doctor")(doctor)


def doctor(*, output: Output = "table", as_json: Json = False) -> None:
    """Check this installation; exit code 1 if something is bad."""
    found = findings(checks())
    headers = ("Result", "Check", "Explanation")
    rows = [(finding.result, finding.check, finding.explanation) for finding in found]
    records = [asdict(finding) for finding in found]
    write_listing(records, headers, lambda: rows, output=output, as_json=as_json)
    if any(finding.result == "bad" for finding in found):
        raise typer.Exit(1)
    if not as_json and output in {"table", "wide"}:
        Messages().info("Everything that was checked is in order.")


Check = Callable[[], Iterator[Finding]]


def checks() -> tuple[Check, ...]:
    """Return the checks of `nnictl doctor` in order; fewer if the services run elsewhere.

    Where the services are those of another machine, nothing of this one matters to them.
    """
    from nni.cli.diagnosis import installation, machine, processes, services, state
    from nni.experiment.environment import services_are_elsewhere

    everywhere: Final = (installation.check_python, services.check_version)
    here: Final = (
        installation.check_packages,
        machine.check_disk,
        machine.check_bus_room,
        machine.check_descriptors,
        machine.check_watches,
        machine.check_clock,
        machine.check_gpus,
        state.check_token,
        state.check_endpoint_file,
        state.check_logs,
        state.check_ports,
        processes.check_children,
        processes.check_interpreter,
        processes.check_orphans,
    )
    if services_are_elsewhere():
        return (*everywhere, services.check_services)
    return (*everywhere, *here, services.check_services)


def findings(wanted: Iterable[Check]) -> list[Finding]:
    """Run every check and return its findings; an exception of a check is a finding, too."""
    from nni.experiment.errors import RefusedError

    found: list[Finding] = []
    for check in wanted:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        try:
            found.extend(check())
        except RefusedError as error:  # it says what to do
            found.append(Finding(name, "bad", str(error)))
        except PermissionError as error:
            text = f"could not be checked: you may not read {error.filename}"
            found.append(Finding(name, "note", text))
        except Exception as error:  # noqa: BLE001 - a rim: the other checks must still be made
            text = f"could not be checked ({type(error).__name__}: {error}); please report this"
            found.append(Finding(name, "note", text))
    return found

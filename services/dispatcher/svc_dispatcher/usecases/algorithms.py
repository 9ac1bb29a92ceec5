"""Listing and validation of algorithms."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nni.hpo.space.feasibility import broken_constraints
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.domain.values import RequestedAlgorithm
from svc_dispatcher.ports import AlgorithmCatalog, ClassChecker, ClassChoice, NamedAlgorithm


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Warnings and optimize mode of a valid choice of algorithms."""

    warnings: tuple[str, ...]
    """Legal settings that are probably mistakes."""
    optimize_mode: str
    """`maximize` or `minimize`; empty if the algorithm has no mode."""


@dataclass(frozen=True, slots=True)
class Examined:
    """Classes still to be imported, warnings and optimize mode of a checked choice."""

    classes: tuple[ClassChoice, ...]
    """Classes that must be importable."""
    warnings: tuple[str, ...]
    """Legal settings that are probably mistakes."""
    optimize_mode: str
    """See `ValidationResult`."""


class Algorithms:
    """Use cases that list registered algorithms and validate a choice of them.

    Args:
        catalog: the registered algorithms.
        checker: imports the chosen classes.
    """

    def __init__(self, catalog: AlgorithmCatalog, checker: ClassChecker) -> None:
        self._catalog = catalog
        self._checker = checker

    def list_all(self, kind: str = "") -> list[NamedAlgorithm]:
        """Return the algorithms of a kind; of all kinds if it is empty."""
        return [item for item in self._catalog.algorithms() if not kind or item.kind == kind]

    async def validate(
        self,
        choices: list[RequestedAlgorithm],
        search_space: object,
        interpreter: str,
        enqueued: Sequence[object] = (),
    ) -> ValidationResult:
        """Check algorithms and space, import the classes; return warnings and direction, or raise.

        Args:
            choices: at most one of each kind.
            search_space: any JSON value; named tuners check it.
            interpreter: under which custom classes will run; empty for the dispatcher's own.
            enqueued: configurations to try first.

        Raises:
            InvalidArgumentError: the choice is invalid; it names field, rule, value and remedy.
        """
        examined = await asyncio.to_thread(examine, self._catalog, choices, search_space, enqueued)
        await self.check_classes(examined.classes, interpreter)
        return ValidationResult(examined.warnings, examined.optimize_mode)

    async def check_classes(self, classes: Sequence[ClassChoice], interpreter: str) -> None:
        """Import all chosen classes concurrently; raise InvalidArgumentError for one that fails.

        Raises:
            InvalidArgumentError: one cannot; it names field, rule and value.
        """
        problems = await asyncio.gather(
            *(self._checker.check(wanted, interpreter) for wanted in classes)
        )
        for wanted, problem in zip(classes, problems, strict=True):
            if problem:
                field = "name" if wanted.name else "className"
                raise InvalidArgumentError(
                    f"{wanted.kind}.{field}",
                    f"cannot be used: {problem}",
                    wanted.name or wanted.class_name,
                )


def examine(
    catalog: AlgorithmCatalog,
    choices: Sequence[RequestedAlgorithm],
    search_space: object,
    enqueued: Sequence[object] = (),
) -> Examined:
    """Check chosen algorithms, arguments, space; return classes to import, warnings, direction.

    The time that it takes depends on the search space: run it where a deadline can end it.

    Args:
        catalog: the registered algorithms.
        choices: at most one of each kind.
        search_space: any JSON value; named tuners check it.
        enqueued: configurations to try first.

    Raises:
        InvalidArgumentError: the choice is invalid; it names field, rule, value and remedy.
    """
    _check_combination(catalog, {choice.kind: choice for choice in choices})
    _check_enqueued(enqueued, search_space)
    classes = []
    for choice in choices:
        _check_source(choice)
        if choice.name:
            _check_named(catalog, choice, search_space)
        _check_hand_over(catalog, choice)
        if choice.server_address:
            continue
        classes.append(
            ClassChoice(choice.kind, choice.name, choice.class_name, choice.code_directory)
        )
    return Examined(tuple(classes), _warnings(choices), _optimize_mode(catalog, choices))


def _check_source(choice: RequestedAlgorithm) -> None:
    given = [value for value in (choice.name, choice.class_name, choice.server_address) if value]
    if len(given) != 1:
        raise InvalidArgumentError(
            choice.kind,
            "must have exactly one of 'name', 'className' and a server's address",
            given,
        )
    if choice.server_address:
        _check_server(choice)


def _check_named(
    catalog: AlgorithmCatalog, choice: RequestedAlgorithm, search_space: object
) -> None:
    space = None if choice.kind == "assessor" else search_space
    try:
        catalog.validate(
            choice.kind,
            choice.name,
            choice.class_args,
            space,
            several_outcomes=choice.several_outcomes,
        )
        if choice.replaces_space and choice.kind != "assessor":
            catalog.check_replaceable(choice.kind, choice.name, choice.class_args)
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(choice.kind, f"{choice.name!r} is refused: {error}") from error


def _check_hand_over(catalog: AlgorithmCatalog, choice: RequestedAlgorithm) -> None:
    """Raise InvalidArgumentError if a tuner cannot learn from the trials of the one it replaces."""
    if choice.kind != "tuner" or choice.replaced_tuner is None:
        return
    try:
        catalog.check_hand_over(choice.replaced_tuner, choice.name)
    except ValueError as error:
        raise InvalidArgumentError(
            "tuner.name",
            str(error),
            choice.name or choice.class_name or choice.server_address,
            "create an experiment with this tuner",
        ) from error


def _optimize_mode(catalog: AlgorithmCatalog, choices: Sequence[RequestedAlgorithm]) -> str:
    for choice in choices:
        if choice.kind in {"tuner", "advisor"}:
            if choice.name:
                return catalog.optimize_mode(choice.kind, choice.name, choice.class_args)
            mode = choice.class_args.get("optimize_mode")
            return mode if mode in {"maximize", "minimize"} else ""
    return ""


def _check_combination(
    catalog: AlgorithmCatalog, choices: Mapping[str, RequestedAlgorithm]
) -> None:
    if "advisor" in choices and len(choices) > 1:
        others = " and ".join(sorted(choices.keys() - {"advisor"}))
        raise InvalidArgumentError(
            "advisor", f"excludes {others}", None, f"remove 'advisor', or remove {others}"
        )
    tuner = choices.get("tuner")
    if "advisor" not in choices and tuner is None:
        raise InvalidArgumentError("tuner", "must be given, or 'advisor'", None, "add 'tuner'")
    if tuner is None or "assessor" not in choices:
        return
    if tuner.name and not catalog.takes_assessor(tuner.name):
        raise InvalidArgumentError(
            "assessor", f"must not be used with {tuner.name}", None, "remove 'assessor'"
        )
    if tuner.server_address:
        raise InvalidArgumentError(
            "assessor",
            "must not be used with a tuner that a server runs",
            None,
            "remove 'assessor'; the server may advise to stop trials itself",
        )


def _check_enqueued(enqueued: Sequence[object], search_space: object) -> None:
    for number, configuration in enumerate(enqueued):
        if not isinstance(configuration, dict):
            raise InvalidArgumentError(
                f"search.enqueue[{number}]",
                "must be a map from names of hyperparameters to values",
                configuration,
            )
    for number, constraint in enumerate(broken_constraints(search_space, enqueued)):
        if constraint:
            raise InvalidArgumentError(
                f"search.enqueue[{number}]",
                f"must keep the constraint {constraint} of the search space",
                enqueued[number],
                "change the configuration, or remove it",
            )


def _check_server(choice: RequestedAlgorithm) -> None:
    field = f"{choice.kind}.serverAddress"
    if choice.kind != "tuner":
        raise InvalidArgumentError(field, "is only for a tuner", choice.server_address)
    host, _, port = choice.server_address.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidArgumentError(
            field, "must be host:port", choice.server_address, "e.g. 127.0.0.1:50080"
        )


def _warnings(choices: Sequence[RequestedAlgorithm]) -> tuple[str, ...]:
    modes = {
        choice.kind: choice.class_args.get("optimize_mode")
        for choice in choices
        if choice.kind in {"tuner", "assessor"} and choice.class_args.get("optimize_mode")
    }
    if len(set(modes.values())) > 1:
        warning = f"tuner {modes['tuner']}s and assessor {modes['assessor']}s: give both one mode"
        return (warning,)
    return ()

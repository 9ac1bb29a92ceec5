"""Constraints between hyperparameters, declared under the key `_constraints` of a search space.

A list of texts such as `"width * layers <= 2048"`, in the language of `nni.hpo.space._expression`,
and of forbidden combinations such as `{"_forbid": {"optimizer": "sgd", "model/_name": "mlp"}}`. A
name is the path of a value in the configuration: `model/lr` is the `lr` of the active branch of
`model`, `model/deep/lr` that of its branch `deep`, `model` itself the branch's name. A constraint
on an inactive parameter is satisfied; one that cannot be computed is violated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, NoReturn

from nni.hpo.json_value import JsonValue
from nni.hpo.space._expression import Expression, ExpressionError, parse
from nni.hpo.space.domains import (
    CONSTRAINTS_KEY,
    ChoiceDomain,
    Parameter,
    Space,
    canonical_json,
    same_value,
)

FORBID_KEY: Final = "_forbid"

DRAWS: Final = 10_000
"""Samples without a feasible one after which a space is refused."""
OPERATIONS_LIMIT: Final = 20_000
"""Most operands and operators of all constraints of a space: what one configuration costs."""
_OPERATIONS_BUDGET: Final = 2_000_000
"""Operations after which the search for a feasible sample ends, whatever `DRAWS` allows."""
_OPERATIONS_OF_A_RULE: Final = 10
"""Cost of the evaluation of any constraint, besides that of its operands and operators."""
_EXAMINED: Final = 32
"""Samples on which every constraint is evaluated, to find type errors."""
_MOST: Final = 1000
"""Most constraints of one space."""
_NAME: Final = "_name"


class InfeasibleSpaceError(ValueError):
    """Error: no feasible configuration of a search space was found."""


class _Absent:
    """Type of the value of an inactive parameter."""


_ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Reference:
    """Path to one value of a configuration."""

    keys: tuple[str, ...]
    branches: tuple[str | None, ...] = ()
    """Required active branch per step, None for any; empty means any at every step."""

    def find(self, configuration: JsonValue) -> JsonValue:
        """Return the value at this path in a configuration; `_ABSENT` if it is not active."""
        value = configuration
        for step, key in enumerate(self.keys):
            if not isinstance(value, Mapping) or key not in value:
                return _ABSENT
            if self.branches and self.branches[step] not in {None, value.get(_NAME)}:
                return _ABSENT
            value = value[key]
        return value[_NAME] if isinstance(value, Mapping) and _NAME in value else value


_SHOWN: Final = 200
"""Longest text of a constraint that messages repeat, in characters."""


@dataclass(frozen=True, slots=True)
class ExpressionConstraint:
    """Constraint written as an expression; implements `nni.hpo.space.domains.Constraint`."""

    text: str
    references: tuple[Reference, ...]
    """Paths of the names in the expression, in order."""
    expression: Expression

    @property
    def keys(self) -> frozenset[str]:
        """Keys, at the top of a configuration, of the parameters that the expression names."""
        return frozenset(reference.keys[0] for reference in self.references)

    def holds(self, configuration: JsonValue) -> bool:
        """Return whether the expression is true or names an inactive parameter; False on errors."""
        try:
            return self.judge(configuration)
        except (ExpressionError, ArithmeticError):
            return False

    def judge(self, configuration: JsonValue) -> bool:
        """Return the same as `holds`, but raise ExpressionError for operands of a wrong type.

        Raises:
            ExpressionError: an operand has a wrong type.
        """
        values = [reference.find(configuration) for reference in self.references]
        if any(value is _ABSENT for value in values):
            return True
        try:
            return self.expression.holds(values)
        except ArithmeticError:
            return False


@dataclass(frozen=True, slots=True)
class ForbiddenCombination:
    """Forbidden combination of values; implements `nni.hpo.space.domains.Constraint`."""

    text: str
    values: tuple[tuple[Reference, JsonValue], ...]

    @property
    def keys(self) -> frozenset[str]:
        """Keys, at the top of a configuration, of the parameters of the combination."""
        return frozenset(reference.keys[0] for reference, _ in self.values)

    def holds(self, configuration: JsonValue) -> bool:
        """Return False if a configuration has all values of the combination."""
        return not all(
            same_value(reference.find(configuration), value) for reference, value in self.values
        )

    judge = holds


def constrained(space: Space, declared: object) -> Space:
    """Return a space with its declared constraints and one configuration that meets them.

    Args:
        space: a space without constraints.
        declared: value of the key `_constraints`.

    Raises:
        ValueError: a constraint is malformed; the message names it.
        InfeasibleSpaceError: none of `DRAWS` samples is feasible.
    """
    rules = declared_rules(space, declared)
    return replace(space, rules=rules, anchor=_feasible_sample(space, rules)) if rules else space


def declared_rules(
    space: Space, declared: object
) -> tuple[ExpressionConstraint | ForbiddenCombination, ...]:
    """Return the declared constraints of a space, without a check of feasibility.

    Raises:
        ValueError: a constraint is malformed; the message names it.
    """
    names = _names_of(space)
    return read_rules(declared, {name: found[0] for name, found in names.items()}, names)


def read_rules(
    declared: object,
    references: Mapping[str, Reference],
    names: "Mapping[str, tuple[Reference, list[Parameter]]] | None" = None,
) -> tuple[ExpressionConstraint | ForbiddenCombination, ...]:
    """Parse the value of the key `_constraints` to rules; raise ValueError if it is malformed.

    Args:
        declared: the value.
        references: path of each known name.
        names: parameters that each name may refer to, where known.

    Raises:
        ValueError: a constraint is malformed; the message names it.
    """
    if not isinstance(declared, list | tuple) or len(declared) > _MOST:
        raise ValueError(
            f"search space, {CONSTRAINTS_KEY}: must be a list of at most {_MOST} texts and "
            f"{{'{FORBID_KEY}': {{name: value}}}}, got {declared!r:.200}"
        )
    rules: list[ExpressionConstraint | ForbiddenCombination] = []
    operations = 0
    for number, item in enumerate(declared):
        if isinstance(item, str):
            rules.append(_comparison(number, item, references))
        elif isinstance(item, dict) and list(item) == [FORBID_KEY]:
            rules.append(_forbidden(number, item[FORBID_KEY], references, names or {}))
        else:
            _refuse(number, item, f"must be a text or {{'{FORBID_KEY}': {{name: value}}}}")
        operations += operations_of(rules[-1])
        if operations > OPERATIONS_LIMIT:
            raise ValueError(
                f"search space, {CONSTRAINTS_KEY}: must have at most {OPERATIONS_LIMIT:,} operands "
                f"and operators in all, has more from [{number}] on: shorten the constraints"
            )
    return tuple(rules)


def operations_of(rule: ExpressionConstraint | ForbiddenCombination) -> int:
    """Return the cost of the check of one configuration, as a number of operations."""
    own = rule.expression.operations if isinstance(rule, ExpressionConstraint) else len(rule.values)
    return _OPERATIONS_OF_A_RULE + own


def shown_text(text: str) -> str:
    """Return the text of a constraint as messages show it: its beginning if it is long."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _refuse(number: int, item: object, reason: object) -> NoReturn:
    raise ValueError(f"search space, {CONSTRAINTS_KEY}[{number}] {item!r:.200}: {reason}")


def _comparison(
    number: int, text: str, references: Mapping[str, Reference]
) -> ExpressionConstraint:
    try:
        expression = parse(text, references.keys())
    except ExpressionError as error:
        _refuse(number, text, error)
    if not expression.names:
        _refuse(number, text, "must name a hyperparameter")
    return ExpressionConstraint(
        text, tuple(references[name] for name in expression.names), expression
    )


def _forbidden(
    number: int,
    combination: object,
    references: Mapping[str, Reference],
    names: Mapping[str, tuple[Reference, list[Parameter]]],
) -> ForbiddenCombination:
    if not isinstance(combination, dict) or not combination:
        _refuse(number, {FORBID_KEY: combination}, "must be a dict of name to value, not empty")
    for name, value in combination.items():
        if name not in references:
            known = ", ".join(sorted(references))
            _refuse(number, {FORBID_KEY: combination}, f"unknown name {name!r} (known: {known})")
        parameters = names[name][1] if name in names else []
        if parameters and not any(_can_be(parameter, value) for parameter in parameters):
            _refuse(number, {FORBID_KEY: combination}, f"{name!r} is never {value!r}")
    values = tuple((references[name], value) for name, value in combination.items())
    return ForbiddenCombination(canonical_json({FORBID_KEY: combination}), values)


def _can_be(parameter: Parameter, value: object) -> bool:
    domain = parameter.domain
    if isinstance(domain, ChoiceDomain):
        if any(branch is not None and branch.name == value for branch in domain.branches()):
            return True
        try:
            domain.position(value)
        except ValueError:
            return False
        return True
    try:
        domain.check(value)
    except ValueError:
        return False
    return True


def _names_of(space: Space) -> dict[str, tuple[Reference, list[Parameter]]]:
    """Return all names that constraints of a space may use, each with its parameters."""
    names: dict[str, tuple[Reference, list[Parameter]]] = {}
    for reference, parameter in _references(space, (), (None,)):
        short = Reference(reference.keys)
        names.setdefault("/".join(short.keys), (short, []))[1].append(parameter)
        if any(reference.branches):
            names.setdefault(parameter.path, (reference, []))[1].append(parameter)
        if isinstance(parameter.domain, ChoiceDomain) and any(parameter.domain.branches()):
            inner = Reference((*short.keys, _NAME))
            names.setdefault("/".join(inner.keys), (inner, []))[1].append(parameter)
    return names


def _references(
    space: Space, keys: tuple[str, ...], branches: tuple[str | None, ...]
) -> Iterator[tuple[Reference, Parameter]]:
    for parameter in space.parameters:
        path = (*keys, parameter.key)
        yield Reference(path, branches), parameter
        if isinstance(parameter.domain, ChoiceDomain):
            for branch in parameter.domain.branches():
                if branch is not None:
                    yield from _references(branch.space, path, (*branches, branch.name))


def _feasible_sample(
    space: Space, rules: Sequence[ExpressionConstraint | ForbiddenCombination]
) -> dict[str, JsonValue]:
    """Return a feasible draw; raise InfeasibleSpaceError if none of many is.

    Raises:
        ValueError: a constraint has operands of a wrong type.
        InfeasibleSpaceError: none was found.
    """
    rng = Random(0)
    held = [0] * len(rules)
    found: dict[str, JsonValue] | None = None
    draws = max(_EXAMINED, min(DRAWS, _OPERATIONS_BUDGET // sum(map(operations_of, rules))))
    for count in range(draws):
        if found is not None and count >= _EXAMINED:
            return found
        configuration = space.draw(rng)
        judgements = [_judged(*item, configuration) for item in enumerate(rules)]
        held = [before + now for before, now in zip(held, judgements, strict=True)]
        if found is None and all(judgements):
            found = configuration
    if found is not None:
        return found
    rarest = min(range(len(rules)), key=held.__getitem__)
    raise InfeasibleSpaceError(
        f"search space, {CONSTRAINTS_KEY}: none of {draws} draws keeps all constraints; "
        f"{shown_text(rules[rarest].text)!r} alone is kept by {held[rarest]} of them: "
        "widen the space or loosen the constraints"
    )


def _judged(
    number: int, rule: ExpressionConstraint | ForbiddenCombination, configuration: JsonValue
) -> bool:
    try:
        return rule.judge(configuration)
    except ExpressionError as error:
        _refuse(number, rule.text, f"{error} (in {configuration!r:.200})")

"""Expression language of constraints: a parser that compiles expressions to Python closures.

The text is never passed to `eval`. The language has:

Numbers, strings, `true`, `false`, `none`, lists; names of hyperparameters; `+ - * / // % **`;
`== != < <= > >=`, chained as in `1 < x <= y`; `in`, `not in`; `and`, `or`, `not`; parentheses.
A name is a path in the configuration, `model/lr`; a name that is no identifier, or a keyword, is
quoted by backticks. `a/b` without spaces is the nested name if there is one, else a division.

Numbers that differ by rounding only are equal, in `<` and `>=` too: 0.30000000000000004 is not
greater than 0.3.
"""

import math
import operator
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import RELATIVE_TOLERANCE, same_value

Evaluator: TypeAlias = Callable[[Sequence[JsonValue]], JsonValue]
"""Function of the values of an expression's names, in order; raises as Python's operators do."""

_Step: TypeAlias = "tuple[Callable[[float, float], float], Evaluator]"
"""One operator of a chain and its right operand."""

MOST_CHARACTERS: Final = 2000
_MOST_NESTED: Final = 50
_TOO_DEEP: Final = "is nested too deeply: write it as several constraints"
_LARGEST_POWER: Final = 1e4
"""Largest base or exponent with exact integer powers; larger ones are floats."""

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[^\W\d]\w*(?:/[^\W\d]\w*)*)
    | `(?P<quoted>[^`]+)`
    | (?P<string>'[^']*'|"[^"]*")
    | (?P<symbol>\*\*|//|<=|>=|==|!=|[-+*/%<>()\[\],])
    )""",
    re.VERBOSE,
)
_WORDS: Final = frozenset({"and", "or", "not", "in"})
_CONSTANTS: Final = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "none": None,
    "None": None,
    "null": None,
}


class ExpressionError(ValueError):
    """Error: the text is no expression, or its operands have a wrong type."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Compiled expression: its text, the names that it refers to, an evaluator and its cost."""

    text: str
    names: tuple[str, ...]
    """Names that it refers to, each once."""
    evaluate: Evaluator
    """Function of the values of `names`."""
    operations: int
    """Number of its operands and operators: what one evaluation costs."""

    def holds(self, values: Sequence[JsonValue]) -> bool:
        """Return whether the expression is true for values; ExpressionError if it is no bool.

        Raises:
            ExpressionError: its value is not a bool, or it is nested too deeply for this stack.
            ArithmeticError: it cannot be computed, as in a division by 0.
        """
        try:
            return _truth(self.evaluate(values))
        except RecursionError:
            raise ExpressionError(_TOO_DEEP) from None


def parse(text: str, known: Collection[str]) -> Expression:
    """Parse and compile an expression; ExpressionError with the position if it is malformed.

    Args:
        text: at most `MOST_CHARACTERS` of the language above.
        known: names that may be used.

    Raises:
        ExpressionError: the text is malformed; the message gives the position.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"must have at most {MOST_CHARACTERS} characters, has {len(text)}")
    try:
        return _Parser(text, known).parse()
    except RecursionError:
        raise ExpressionError(_TOO_DEEP) from None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """number, string, name, symbol or end."""
    text: str
    at: int


def _tokens(text: str, known: Collection[str]) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise ExpressionError(f"{_hint(text[at:])} at character {at + 1}")
        kind, word, start = match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)
        at = match.end()
        if kind == "name":
            while word not in known and "/" in word:  # a division after all
                word = word.rpartition("/")[0]
            at = start + len(word)
            if word in _WORDS:
                kind = "symbol"
        tokens.append(_Token("name!" if kind == "quoted" else kind, word, start))
    return [*tokens, _Token("end", "", len(text))]


def _hint(rest: str) -> str:
    signs = (("&&", "and"), ("||", "or"), ("!", "not"), ("=<", "<="), ("=>", ">="), ("=", "=="))
    for sign, word in signs:
        if rest.startswith(sign):
            return f"{sign!r} is written {word!r}; found"
    return f"cannot read {rest[:10]!r}"


class _Parser:
    """Recursive-descent parser, one method per level of precedence."""

    def __init__(self, text: str, known: Collection[str]) -> None:
        self._text = text
        self._known = known
        self._tokens = _tokens(text, known)
        self._next = 0
        self._depth = 0
        self._names: list[str] = []

    def parse(self) -> Expression:
        evaluation = self._disjunction()
        if self._peek().kind != "end":
            raise self._unexpected("an operator")
        return Expression(self._text, tuple(self._names), evaluation, len(self._tokens))

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *symbols: str) -> str | None:
        """Consume and return the next token if it is one of the symbols; else return None."""
        token = self._peek()
        if token.kind == "symbol" and token.text in symbols:
            self._next += 1
            return token.text
        return None

    def _expect(self, symbol: str) -> None:
        if self._take(symbol) is None:
            raise self._unexpected(repr(symbol))

    def _unexpected(self, wanted: str) -> ExpressionError:
        token = self._peek()
        found = "the end" if token.kind == "end" else repr(token.text)
        return ExpressionError(f"expected {wanted}, found {found} at character {token.at + 1}")

    def _disjunction(self) -> Evaluator:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise ExpressionError(f"parentheses must be nested at most {_MOST_NESTED} deep")
        parts = [self._conjunction()]
        while self._take("or"):
            parts.append(self._conjunction())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else _any_of(parts)

    def _conjunction(self) -> Evaluator:
        parts = [self._negation()]
        while self._take("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else _all_of(parts)

    def _negation(self) -> Evaluator:
        count = 0
        while self._take("not"):
            count += 1
        inner = self._comparison()
        if not count:
            return inner
        return lambda values: _truth(inner(values)) is (count % 2 == 0)

    def _comparison(self) -> Evaluator:
        parts = [self._sum()]
        compares: list[Callable[[JsonValue, JsonValue], bool]] = []
        while (compare := self._comparator()) is not None:
            compares.append(compare)
            parts.append(self._sum())
        if not compares:
            return parts[0]
        if len(compares) == 1:
            (left, right), (only,) = parts, compares
            return lambda values: only(left(values), right(values))

        def chained(values: Sequence[JsonValue]) -> bool:
            every = [part(values) for part in parts]
            return all(
                compare(a, b) for compare, a, b in zip(compares, every, every[1:], strict=False)
            )

        return chained

    def _comparator(self) -> Callable[[JsonValue, JsonValue], bool] | None:
        symbol = self._take(*_COMPARISONS)
        if symbol is not None:
            return _COMPARISONS[symbol]
        if self._take("in"):
            return _is_in
        if self._take("not"):
            self._expect("in")
            return lambda item, items: not _is_in(item, items)
        return None

    def _sum(self) -> Evaluator:
        first, steps = self._product(), []
        while (symbol := self._take("+", "-")) is not None:
            steps.append((_ARITHMETIC[symbol], self._product()))
        return _chain(first, steps) if steps else first

    def _product(self) -> Evaluator:
        first, steps = self._signed(), []
        while (symbol := self._take("*", "/", "//", "%")) is not None:
            steps.append((_ARITHMETIC[symbol], self._signed()))
        return _chain(first, steps) if steps else first

    def _signed(self) -> Evaluator:
        """Parse a power with signs, `-x ** -y ** z`: right-associative, signs bind less."""
        factors = [(self._negative(), self._atom())]
        while self._take("**"):
            factors.append((self._negative(), self._atom()))
        if factors == [(False, factors[0][1])]:
            return factors[0][1]
        return _power(factors)

    def _negative(self) -> bool:
        negative = False
        while (symbol := self._take("+", "-")) is not None:
            negative ^= symbol == "-"
        return negative

    def _atom(self) -> Evaluator:
        if self._take("("):
            inner = self._disjunction()
            if self._peek().text != ",":
                self._expect(")")
                return inner
            return self._list(")", [inner])
        if self._take("["):
            return self._list("]", [])
        token = self._peek()
        if token.kind in {"end", "symbol"}:
            raise self._unexpected("a value")
        self._next += 1
        if token.kind == "name" and token.text in _CONSTANTS:
            return _constant(_CONSTANTS[token.text])
        if token.kind in {"name", "name!"}:
            return self._name(token)
        if token.kind == "string":
            return _constant(token.text[1:-1])
        number = float(token.text)
        return _constant(int(token.text) if token.text.isdigit() else number)

    def _list(self, closing: str, items: list[Evaluator]) -> Evaluator:
        while not self._take(closing):
            if items:
                self._expect(",")
                if self._take(closing):
                    break
            items.append(self._disjunction())
        return lambda values: [item(values) for item in items]

    def _name(self, token: _Token) -> Evaluator:
        name = token.text
        if name not in self._known:
            close = get_close_matches(name, self._known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            known = ", ".join(sorted(self._known)) or "none"
            raise ExpressionError(
                f"unknown name {name!r} at character {token.at + 1}{hint} (known: {known:.500})"
            )
        if name not in self._names:
            self._names.append(name)
        return operator.itemgetter(self._names.index(name))


def _constant(value: JsonValue) -> Evaluator:
    return lambda _values: value


def _truth(value: JsonValue) -> bool:
    if isinstance(value, bool):
        return value
    raise ExpressionError(f"must be true or false, got {value!r:.100}: compare it with something")


def _number(value: JsonValue) -> float:
    if isinstance(value, int | float):  # true counts as 1, so that flags can be summed
        return value
    raise ExpressionError(f"must be a number to calculate with or to order, got {value!r:.100}")


def _all_of(parts: Sequence[Evaluator]) -> Evaluator:
    return lambda values: all(_truth(part(values)) for part in parts)


def _any_of(parts: Sequence[Evaluator]) -> Evaluator:
    return lambda values: any(_truth(part(values)) for part in parts)


def _chain(first: Evaluator, steps: Sequence[_Step]) -> Evaluator:
    """Return the evaluator of `a + b - c …`: a loop, so that its depth is that of its operands."""

    def evaluate(values: Sequence[JsonValue]) -> JsonValue:
        total = _number(first(values))
        for calculate, operand in steps:
            total = calculate(total, _number(operand(values)))
        return total

    return evaluate


def _power(factors: Sequence[tuple[bool, Evaluator]]) -> Evaluator:
    """Return the evaluator of `a ** b ** c`, computed from the right.

    Args:
        factors: whether a factor, with the power to its right, is negated; and its evaluator.
    """

    def evaluate(values: Sequence[JsonValue]) -> JsonValue:
        numbers = [_number(factor(values)) for _, factor in factors]
        power = numbers[-1]
        for (negative, _), base in zip(factors[:0:-1], numbers[-2::-1], strict=True):
            power = _raised(base, -power if negative else power)
        return -power if factors[0][0] else power

    return evaluate


def _raised(base: float, exponent: float) -> float:
    if abs(base) > _LARGEST_POWER or abs(exponent) > _LARGEST_POWER:
        base, exponent = float(base), float(exponent)
    elif isinstance(base, int) and isinstance(exponent, int) and exponent > 64:  # noqa: PLR2004 - exact up to here
        base = float(base)
    power = base**exponent
    if isinstance(power, complex):
        raise ArithmeticError(f"{base!r} ** {exponent!r} is no real number")  # noqa: TRY004 - of a value, not of its type
    return float(power) if isinstance(power, float) else power


_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": _raised,
}


def _equal(left: JsonValue, right: JsonValue) -> bool:
    return same_value(left, right)


def _below(left: JsonValue, right: JsonValue) -> bool:
    a, b = _number(left), _number(right)
    return a < b and not math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE)


def _not_above(left: JsonValue, right: JsonValue) -> bool:
    a, b = _number(left), _number(right)
    return a <= b or math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE)


def _is_in(item: JsonValue, items: JsonValue) -> bool:
    if not isinstance(items, list):
        raise ExpressionError(f"'in' must be followed by a list, got {items!r:.100}")
    return any(same_value(item, other) for other in items)


_COMPARISONS: Final[dict[str, Callable[[JsonValue, JsonValue], bool]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _below,
    "<=": _not_above,
    ">": lambda left, right: _below(right, left),
    ">=": lambda left, right: _not_above(right, left),
}

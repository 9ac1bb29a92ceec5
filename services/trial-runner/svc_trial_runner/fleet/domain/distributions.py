"""Distributions that an agent needs on a worker: requirements, markers, tags of wheels."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_REQUIREMENT: Final = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[(?P<extras>[^\]]*)\])?\s*(?P<rule>[^;]*)"
    r"(;(?P<marker>.*))?\Z",
    re.DOTALL,
)
_PLATFORM: Final = re.compile(
    r"(?P<libc>many|musl)linux_(?P<major>\d+)_(?P<minor>\d+)_(?P<cpu>\w+)"
)
_OLDER: Final = {
    "manylinux1_": "manylinux_2_5_",
    "manylinux2010_": "manylinux_2_12_",
    "manylinux2014_": "manylinux_2_17_",
}
"""Names of platform tags before they had the version of the C library."""
_OLDEST_MINOR: Final = {"many": 5, "musl": 1}
_PYTHON_TAG: Final = re.compile(r"(cp|py)(\d)(\d*)")


@dataclass(frozen=True, slots=True)
class WorkerTarget:
    """Interpreter and platform that distributions have to run on."""

    python: tuple[int, int]
    """Major and minor version of CPython."""
    platform_tag: str
    """The newest platform tag of its wheels, e.g. `manylinux_2_36_x86_64`."""

    @property
    def python_tag(self) -> str:
        """Tag of its wheels, e.g. `cp311`."""
        return f"cp{self.python[0]}{self.python[1]}"

    @property
    def cpu(self) -> str:
        """Architecture, e.g. `x86_64`; empty: the platform tag is of an unknown form."""
        match = _PLATFORM.fullmatch(self.platform_tag)
        return match["cpu"] if match else ""

    @property
    def platform_tags(self) -> list[str]:
        """All platform tags of its wheels, newest first, then old names such as `manylinux2014`."""
        match = _PLATFORM.fullmatch(self.platform_tag)
        if match is None:
            return [self.platform_tag]
        libc, major, newest = match["libc"], match["major"], int(match["minor"])
        tags = [
            f"{libc}linux_{major}_{minor}_{match['cpu']}"
            for minor in range(newest, _OLDEST_MINOR[libc] - 1, -1)
        ]
        return tags + [
            old + match["cpu"] for old, new in _OLDER.items() if new + match["cpu"] in tags
        ]

    def markers(self) -> dict[str, str]:
        """Return the values of environment-marker variables (PEP 508) on the worker."""
        version = f"{self.python[0]}.{self.python[1]}"
        return {
            "os_name": "posix",
            "sys_platform": "linux",
            "platform_system": "Linux",
            "platform_machine": self.cpu,
            "platform_python_implementation": "CPython",
            "implementation_name": "cpython",
            "implementation_version": f"{version}.0",
            "python_version": version,
            "python_full_version": f"{version}.0",
            "platform_release": "",
            "platform_version": "",
        }


@dataclass(frozen=True, slots=True)
class Requirement:
    """Requirement of a distribution: normalized name, extras, rule of versions, marker."""

    name: str
    """Normalized."""
    extras: frozenset[str]
    rule: str
    """Of versions, e.g. `>=1.80`; empty: any."""
    marker: str
    """Condition; empty: always."""


def normalized(name: str) -> str:
    """Return the name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_requirement(text: str) -> Requirement | None:
    """Return the parts of a requirement; None: it is not understood, e.g. an address."""
    match = _REQUIREMENT.match(text)
    if match is None or "@" in match["rule"]:
        return None
    return Requirement(
        normalized(match["name"]),
        frozenset(filter(None, (part.strip() for part in (match["extras"] or "").split(",")))),
        match["rule"].strip().removeprefix("(").removesuffix(")"),
        (match["marker"] or "").strip(),
    )


def is_needed(requirement: Requirement, target: WorkerTarget, extras: frozenset[str]) -> bool:
    """Return whether a requirement's marker holds on a worker; True if there is none, or a bad one.

    Args:
        requirement: of a distribution.
        target: the worker's interpreter.
        extras: of the distribution that are wanted.
    """
    if not requirement.marker:
        return True
    try:
        tree = ast.parse(requirement.marker, mode="eval").body
    except SyntaxError:
        return True  # one distribution too many does no harm
    variables = target.markers()
    return any(_holds(tree, {**variables, "extra": extra}) for extra in {"", *extras})


def _holds(node: ast.expr, variables: Mapping[str, str]) -> bool:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_holds(value, variables) for value in values)
        case ast.BoolOp(values=values):
            return any(_holds(value, variables) for value in values)
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            names = [one.id for one in (left, right) if isinstance(one, ast.Name)]
            is_version = any("version" in name for name in names)
            return _compare(
                operator, _text(left, variables), _text(right, variables), is_version=is_version
            )
        case _:
            return True


def _text(node: ast.expr, variables: Mapping[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return variables.get(name, "")
        case ast.Constant(value=str(value)):
            return value
        case _:
            return ""


def _compare(operator: ast.cmpop, left: str, right: str, *, is_version: bool) -> bool:
    first: tuple[object, ...] = _version(left) if is_version else (left,)
    second: tuple[object, ...] = _version(right) if is_version else (right,)
    match operator:
        case ast.In():
            return left in right
        case ast.NotIn():
            return left not in right
        case ast.Eq():
            return first == second
        case ast.NotEq():
            return first != second
        case ast.Lt():
            return first < second
        case ast.LtE():
            return first <= second
        case ast.Gt():
            return first > second
        case _:
            return first >= second


def _version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at its end, so that 3.12 is 3.12.0."""
    numbers = [int(part) for part in re.findall(r"\d+", text)]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def runs_on(tag: str, target: WorkerTarget, here: WorkerTarget | None = None) -> bool:
    """Return whether a wheel with a tag runs on a worker.

    Args:
        tag: `<python>-<abi>-<platform>`, each of which may be several names with dots between.
        target: the worker's interpreter.
        here: interpreter that a wheel with the tag `linux_...` was built by; None: unknown.
    """
    pythons, _, rest = tag.partition("-")
    interfaces, _, platforms = rest.partition("-")
    return any(
        _python_fits(python, interface, target) and _platform_fits(platform, target, here)
        for python in pythons.split(".")
        for interface in interfaces.split(".")
        for platform in platforms.split(".")
    )


def _python_fits(python: str, interface: str, target: WorkerTarget) -> bool:
    match = _PYTHON_TAG.fullmatch(python)
    if match is None or int(match[2]) != target.python[0]:
        return False
    minor = int(match[3]) if match[3] else 0
    if interface == "abi3":
        return match[1] == "cp" and minor <= target.python[1]
    if interface == "none":
        # Of CPython only: a module that is loaded by its path, for this version or any.
        return minor <= target.python[1] if match[1] == "py" else python == target.python_tag
    return python == interface == target.python_tag


def _platform_fits(platform: str, target: WorkerTarget, here: WorkerTarget | None) -> bool:
    if platform == "any" or platform in target.platform_tags:
        return True
    return (
        here is not None
        and platform == f"linux_{here.cpu}"
        and here.platform_tag in target.platform_tags
    )


@dataclass(frozen=True, slots=True)
class WheelName:
    """Parts of the name of a wheel's file: normalized name, version, tag."""

    name: str
    """Normalized."""
    version: str
    tag: str


def parse_wheel_name(file_name: str) -> WheelName | None:
    """Return the parts of a wheel's file name; None: it is not one."""
    parts = file_name.removesuffix(".whl").split("-")
    if not file_name.endswith(".whl") or len(parts) not in {5, 6}:
        return None
    return WheelName(normalized(parts[0]), parts[1], "-".join(parts[-3:]))

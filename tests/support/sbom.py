"""Bills of materials in CycloneDX of the distributions and images: locked packages with hashes."""

import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.image_requirements import SERVICES
from tests.support.wheels import DISTRIBUTIONS, ROOT, project_of

LOCK = "constraints.txt"
_PIN = re.compile(r"([\w.-]+)==([\w.!+-]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NAMESPACE = uuid.UUID("8f0f3c1e-5d0b-5d7e-9f55-3a0d7c0c6b4e")
"""Of the serial numbers, which are made from the content: the same content has the same one."""


def write_bills(target: Path, time: int) -> None:
    """Write the bill of materials of each distribution and each image beside the wheels.

    Args:
        target: folder of the wheels.
        time: seconds since 1970 that the bills say they were made at.
    """
    for distribution in DISTRIBUTIONS:
        project = project_of(distribution)
        name, version = str(project["name"]), str(project["version"])
        wheel = next(target.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
        _write(target / f"{name}.cdx.json", distribution_bill(name, wheel), time)
    for service in SERVICES:
        for lock in sorted((ROOT / "services" / service).glob("requirements*.txt")):
            extra = lock.stem.removeprefix("requirements")
            _write(target / f"image-{service}{extra}.cdx.json", image_bill(service, lock), time)


def distribution_bill(name: str, wheel: Path) -> Bom:
    """Return the bill of a distribution: what it and its extras need, in the locked versions.

    What packages need themselves is read from the installed ones; of those that are locked but not
    installed, such as `ray`, it is not known.

    Args:
        name: of the distribution.
        wheel: its file, whose hash the bill has.
    """
    pins = locked_versions()
    own = {str(project_of(one)["name"]): str(project_of(one)["version"]) for one in DISTRIBUTIONS}
    root = _component(name, own[name], ComponentType.LIBRARY)
    root.licenses.add(LicenseExpression("MIT"))
    root.hashes.add(_sha256_of(wheel.read_bytes()))
    root.external_references.add(_reference(ExternalReferenceType.BUILD_META, ROOT / LOCK))
    bill = Bom()
    bill.metadata.component = root
    versions = pins | own
    components = {name: root}
    edges: dict[str, set[str]] = {}
    always = _reached(name, set(), versions, edges)
    for one in sorted(_reached(name, extras_of(name), versions, edges) - {name}):
        scope = ComponentScope.REQUIRED if one in always else ComponentScope.OPTIONAL
        components[one] = _component(one, versions[one], ComponentType.LIBRARY, scope)
        bill.components.add(components[one])
    for one, component in components.items():
        bill.register_dependency(component, [components[other] for other in sorted(edges[one])])
    return bill


def image_bill(service: str, lock: Path) -> Bom:
    """Return the bill of an image: the packages of Python that are installed into it, by hash.

    The base image, and packages of its operating system, are not in it.

    Args:
        service: of the image.
        lock: file with its packages, such as `services/manager/requirements.txt`.
    """
    text = lock.read_text("utf-8")
    root = _component(f"nni-{service}", None, ComponentType.CONTAINER)
    root.external_references.add(_reference(ExternalReferenceType.BUILD_META, lock))
    bill = Bom()
    bill.metadata.component = root
    for entry in re.split(r"\n(?=\S)", text):
        pin = _PIN.match(entry)
        if pin is None:
            continue  # a comment
        name = canonicalize_name(pin[1])
        component = _component(name, pin[2], ComponentType.LIBRARY)
        component.external_references.add(
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(f"https://pypi.org/project/{name}/{pin[2]}/"),
                hashes=[_sha256(found) for found in _HASH.findall(entry)],
            )
        )
        bill.components.add(component)
    bill.register_dependency(root, bill.components)
    return bill


def locked_versions() -> dict[str, str]:
    """Return the versions of `constraints.txt` by canonical name."""
    lines = (ROOT / LOCK).read_text("utf-8").splitlines()
    return {canonicalize_name(pin[1]): pin[2] for pin in filter(None, map(_PIN.match, lines))}


def extras_of(name: str) -> set[str]:
    """Return the names of the extras of one of our distributions."""
    (project,) = (one for one in map(project_of, DISTRIBUTIONS) if one["name"] == name)
    return set(project.get("optional-dependencies", {}))


def _reached(
    name: str, extras: set[str], versions: dict[str, str], edges: dict[str, set[str]]
) -> set[str]:
    """Return the locked packages that a package with extras needs; note each one's in `edges`."""
    seen: set[tuple[str, str]] = set()
    waiting = [(name, extra) for extra in ("", *extras)]
    while waiting:
        package, extra = waiting.pop()
        if (package, extra) in seen:
            continue
        seen.add((package, extra))
        needed = edges.setdefault(package, set())
        for other, wanted in _needs(package, extra):
            if other in versions:
                if other != package:
                    needed.add(other)
                waiting += [(other, one) for one in ("", *wanted)]
    return {package for package, _ in seen}


def _needs(package: str, extra: str) -> Iterator[tuple[str, set[str]]]:
    """Yield what a package, or one of its extras, needs on this machine, with wanted extras."""
    for requirement in map(Requirement, _requirements(package)):
        marker = requirement.marker
        if marker is None:
            holds = not extra
        else:
            # What holds without the extra too is no need of the extra.
            holds = marker.evaluate({"extra": extra}) and (
                not extra or not marker.evaluate({"extra": ""})
            )
        if holds:
            yield canonicalize_name(requirement.name), requirement.extras


def _requirements(package: str) -> Iterable[str]:
    try:
        return requires(package) or ()
    except PackageNotFoundError:
        return ()


def _component(
    name: str, version: str | None, kind: ComponentType, scope: ComponentScope | None = None
) -> Component:
    is_package = kind is ComponentType.LIBRARY
    purl = PackageURL("pypi", None, name, version) if is_package else None
    return Component(
        name=name, version=version, type=kind, scope=scope, purl=purl, bom_ref=str(purl or name)
    )


def _reference(kind: ExternalReferenceType, file: Path) -> ExternalReference:
    """Return a reference to a file of the repository, with its hash."""
    name = file.relative_to(ROOT).as_posix()
    return ExternalReference(type=kind, url=XsUri(name), hashes=[_sha256_of(file.read_bytes())])


def _sha256_of(content: bytes) -> HashType:
    return _sha256(hashlib.sha256(content).hexdigest())


def _sha256(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)


def _write(path: Path, bill: Bom, time: int) -> None:
    bill.metadata.timestamp = datetime.fromtimestamp(time, UTC)
    bill.serial_number = _NAMESPACE
    content = JsonV1Dot6(bill).output_as_string(indent=2)
    bill.serial_number = uuid.uuid5(_NAMESPACE, content)
    path.write_text(JsonV1Dot6(bill).output_as_string(indent=2) + "\n", "utf-8")

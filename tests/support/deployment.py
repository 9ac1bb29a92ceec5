"""The files of `deploy/` as values: images, the compose file, the chart as Helm renders it."""

import json
import os
import re
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
IMAGES = {path.stem: path for path in sorted((DEPLOY / "docker").glob("*.Dockerfile"))}
SERVICE_IMAGES = {**IMAGES, "fleet": IMAGES["trial-runner"]}
"""Dockerfiles by service: the fleet's image is that of the agent with other packages."""
CHART = DEPLOY / "helm" / "nni"
SECRETS = {
    "NNI_TOKEN": "token-of-these-tests",
    "NNI_RUNNER_TOKEN": "token-of-the-agents-of-these-tests",
    "NNI_NATS_MANAGER_PASSWORD": "manager-of-these-tests",
    "NNI_NATS_DISPATCHER_PASSWORD": "dispatcher-of-these-tests",
    "NNI_NATS_COMPRESSOR_PASSWORD": "compressor-of-these-tests",
    "NNI_NATS_NAS_PASSWORD": "nas-of-these-tests",
    "NNI_NATS_FLEET_PASSWORD": "fleet-of-these-tests",
    "NNI_NATS_POOL_PASSWORD": "pool-of-these-tests",
    "REDIS_PASSWORD": "redis-of-these-tests",
    "NNI_S3_ACCESS_KEY": "nni-test",
    "NNI_S3_SECRET_KEY": "secret-of-tests",
}
"""Variables that a `.env` beside the compose file must set."""

_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?:(?P<kind>:[-?])(?P<rest>[^}]*))?\}")
_ACCESS = "/etc/nni/access"
_WARNING = 2
"""Least severity of reported findings."""


@dataclass(frozen=True, slots=True)
class Image:
    """Properties of the last stage of a Dockerfile, the image that runs."""

    copied: tuple[str, ...]
    """Sources that the build stages copy from the repository."""
    installed: tuple[str, ...]
    """Distributions that pip installs, e.g. `./services/common[s3]`."""
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    health_check: tuple[str, ...] = ()


def read_image(path: Path) -> Image:
    """Read a Dockerfile."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    lines = [line.strip() for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip()]
    last_stage = max(index for index, line in enumerate(lines) if line.startswith("FROM "))
    first = [line.split(maxsplit=1) for line in lines[:last_stage]]
    last = [line.split(maxsplit=1) for line in lines[last_stage:]]
    copies = [rest.split()[:-1] for word, rest in first if word == "COPY"]
    pip = " ".join(rest for word, rest in first if word == "RUN" and "pip install" in rest)
    variables = [rest for word, rest in last if word == "ENV"]
    return Image(
        copied=tuple(source for sources in copies for source in sources),
        installed=tuple(word.strip("'") for word in pip.split() if word.strip("'").startswith(".")),
        environment=dict(re.findall(r"(\w+)=(\S+)", " ".join(variables))),
        user=_last(last, "USER"),
        command=_words(_last(last, "CMD")),
        entrypoint=_words(_last(last, "ENTRYPOINT")),
        health_check=_words(_last(last, "HEALTHCHECK").partition("CMD ")[2]),
    )


def read_compose(
    variables: Mapping[str, str] = SECRETS, override: str | None = None
) -> dict[str, Any]:
    """Read the compose file as compose does: variables put in, merge keys resolved.

    Args:
        variables: content of `.env`.
        override: content of a second file, which is merged with the first one.

    Raises:
        KeyError: a variable that must be set is not.
    """
    base = _read_compose_text((DEPLOY / "compose.yaml").read_text(), variables)
    if override is None:
        return base
    return _merged(base, _read_compose_text(override, variables))


def _read_compose_text(file_text: str, variables: Mapping[str, str]) -> dict[str, Any]:

    def value(found: re.Match[str]) -> str:
        given = variables.get(found["name"], "")
        if given:
            return given
        if found["kind"] == ":?":
            raise KeyError(found["name"])
        return found["rest"] or ""

    text = re.sub(r"^\s*#.*\n", "", file_text, flags=re.MULTILINE)
    content: dict[str, Any] = yaml.load(_VARIABLE.sub(value, text), yaml.CSafeLoader)
    return content


def _merged(base: Mapping[str, Any], over: Mapping[str, Any], key: str = "") -> dict[str, Any]:
    """Merge two files by the rules of compose; `.ci/deploy` reads the files by compose itself."""
    result = dict(base)
    for name, value in over.items():
        old = base.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            result[name] = _merged(old, value, name)
        elif name in {"command", "entrypoint"} or (key, name) == ("healthcheck", "test"):
            result[name] = value
        elif name == "volumes" and isinstance(old, list):
            targets = {_target(one) for one in value}
            result[name] = [one for one in old if _target(one) not in targets] + value
        elif isinstance(old, list) and isinstance(value, list):
            result[name] = old + [one for one in value if one not in old]
        else:
            result[name] = value
    return result


def _target(volume: str) -> str:
    parts = volume.split(":")
    return parts[1] if len(parts) > 1 else parts[0]


def compose_environment(service: str, variables: Mapping[str, str] = SECRETS) -> dict[str, str]:
    """Return the environment of a service: that of its image and the additions of compose."""
    added: dict[str, str] = read_compose(variables)["services"][service]["environment"]
    return {**read_image(SERVICE_IMAGES[service]).environment, **added}


def compose_secrets(service: str, certificates: Path) -> dict[str, Path]:
    """Return the secrets and configuration files of a service by their paths in its container."""
    compose = read_compose()
    mounted = {}
    for one in compose["services"][service].get("secrets", []):
        source, target = (one, one) if isinstance(one, str) else (one["source"], one["target"])
        file = compose["secrets"][source]["file"]
        mounted[f"/run/secrets/{target}"] = certificates / file.removeprefix("./certs/")
    if f"./certs/access:{_ACCESS}:ro" in compose["services"][service].get("volumes", []):
        mounted[f"{_ACCESS}/access.json"] = certificates / "access" / "access.json"
    return mounted


@dataclass(frozen=True, slots=True)
class Refused:
    """Reason for which Helm does not render the chart."""

    reason: str


def render_chart(values: Mapping[str, Any]) -> dict[str, str] | Refused:
    """Render the chart with Helm; return texts by name of template, without notes.

    Skips the test where Helm's package is not installed (fails if NNI_REQUIRE_SERVICES=1).
    """
    _require_helm()
    return _rendered(json.dumps(values, sort_keys=True))


def lint_chart(values: Mapping[str, Any]) -> list[str]:
    """Return the warnings and errors of `helm lint`; skips the test as `render_chart` does."""
    _require_helm()
    report = _helm_process().submit(_lint, json.dumps(values)).result()
    found = [
        f"{one['path']}: {one['error']}"
        for one in report["messages"]
        if one["severity"] >= _WARNING
    ]
    return [*found, *report["errors"]]


@cache
def _rendered(values: str) -> dict[str, str] | Refused:
    texts = _helm_process().submit(_render, values).result()
    if isinstance(texts, Refused):
        return texts
    return {
        name.rpartition("/")[2]: text
        for name, text in texts.items()
        if name.endswith((".yaml", ".yml")) and text.strip()
    }


def _require_helm() -> None:
    if find_spec("helm_python") is None:
        reason = "helm-python-sdk is not installed"
        if os.environ.get("NNI_REQUIRE_SERVICES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@cache
def _helm_process() -> ProcessPoolExecutor:
    """Return the process that runs Helm: it brings the run-time system of another language."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def _render(values: str) -> dict[str, str] | Refused:
    import helm_python

    try:
        with helm_python.Chart.load(str(CHART)) as chart:
            texts: dict[str, str] = chart.render(json.loads(values), name="demo", namespace="prod")
            return texts
    except helm_python.HelmError as error:
        return Refused(str(error))


def _lint(values: str) -> dict[str, Any]:
    import helm_python

    report: dict[str, Any] = helm_python.lint(str(CHART), json.loads(values), strict=True)
    return report


def chart_objects(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Render the chart; return its objects."""
    texts = render_chart(values)
    assert not isinstance(texts, Refused), texts.reason
    return [one for text in texts.values() for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def _last(lines: list[list[str]], word: str) -> str:
    found = [rest for first, rest in lines if first == word]
    return found[-1] if found else ""


def _words(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()

"""Kubernetes's messages about refused, waiting and ended agents, and what a person can do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from svc_common.errors import ServiceError
from svc_trial_runner.fleet.domain.agents import AgentName, LaunchFailure, PlatformProblem
from svc_trial_runner.fleet.ports import PlatformError

WORDS_LIMIT: Final = 400
"""Most characters of Kubernetes's own words that are shown."""
CONFLICT: Final = 409
FORBIDDEN: Final = 403
GONE: Final = 410
INVALID: Final = 422
NOT_FOUND: Final = 404
UNAUTHORIZED: Final = 401
_TIME_OUT: Final = 408
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_QUOTA: Final = "exceeded quota"

_LOG_IN: Final = (
    "log in to the cluster again; `kubectl auth can-i create jobs` tries the same credentials"
)
_REMEDIES: Final[tuple[tuple[str, str], ...]] = (
    (r"ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull",
     "look at image, imagePullSecrets and imagePullPolicy"),
    (r"CreateContainerConfigError", "look at secrets: a Secret or one of its keys is missing"),
    (r"RunContainerError|CreateContainerError|StartError|ContainerCannotRun",
     "look at image, python and volumes"),
    (r"exceeded quota", "lower the request or maxAgents, or ask for a larger quota"),
    (r"Insufficient \S+", "lower the request, or wait for resources that become free"),
    (r"didn't match|untolerated taint|had taint|didn't tolerate",
     "look at nodeSelector and tolerations"),
    (r"persistentvolumeclaim|unbound immediate|FailedMount|FailedAttachVolume",
     "look at volumes"),
    (r"violates PodSecurity", "set podSecurity: restricted, and leave out what it does not allow"),
    (r"serviceaccount .* not found", "look at serviceAccount"),
    (r"no PriorityClass", "look at priorityClass"),
    (r"\bEvicted\b.*(ephemeral|disk)|ephemeral.local.storage", "raise ephemeralStorage"),
    (r"OOMKilled", "raise memory"),
    (r"No module named .?svc_trial_runner|not found: .*python|python3: not found",
     "the image has no agent of NNI: derive it from the image of NNI's trial-runner"),
)  # fmt: skip
"""Remedies by a pattern of Kubernetes's words; the first one that matches counts."""
_FIELDS: Final[tuple[tuple[str, str], ...]] = (
    (r"nodeSelector", "nodeSelector"),
    (r"tolerations", "tolerations"),
    (r"priorityClass|PriorityClass", "priorityClass"),
    (r"serviceAccount|serviceaccount", "serviceAccount"),
    (r"imagePullSecrets", "imagePullSecrets"),
    (r"image", "image"),
    (r"nvidia\.com/gpu|resources.*/", "gpuResource"),
    (r"ephemeral-storage", "ephemeralStorage"),
    (r"\bcpu\b", "cpus"),
    (r"\bmemory\b", "memory"),
    (r"volume|mountPath", "volumes"),
    (r"\benv", "secrets"),
    (r"labels", "labels"),
    (r"annotations", "annotations"),
    (r"exceeded quota", "namespace"),
    (r"namespaces?\b", "namespace"),
)
"""Options of the section by a pattern of the path or the words of a refusal."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refusal of a request by the API server: HTTP status, reason, message, bad fields' paths."""

    status: int
    reason: str
    message: str
    fields: tuple[str, ...] = ()
    """Paths of an object that is invalid."""


class KubernetesRefusalError(ServiceError):
    """Error of a request that the API server has refused.

    Attributes:
        refusal: what the server has answered.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def parse_refusal(status: int, body: object, text: str) -> Refusal:
    """Parse an answer's Status object to a refusal; from another body take HTTP status and text.

    Args:
        status: of HTTP.
        body: parsed JSON; anything else than a Status object, as a proxy sends it, is allowed.
        text: of the body, for the message if there is no Status object.
    """
    if not isinstance(body, Mapping) or body.get("kind") != "Status":
        shown = shortened(text) or "no message"
        return Refusal(status, "", f"HTTP status {status}: {shown}")
    details = body.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    fields = tuple(
        str(cause.get("field", "")) for cause in causes or () if isinstance(cause, Mapping)
    )
    message = shortened(str(body.get("message", ""))) or f"HTTP status {status}"
    return Refusal(status, str(body.get("reason", "")), message, tuple(filter(None, fields)))


def shortened(text: str) -> str:
    """Return a message of Kubernetes as one line of limited length."""
    return " ".join(text.split())[:WORDS_LIMIT]


def remedy_of(words: str) -> str:
    """Return the remedy for a message of Kubernetes; empty: unknown."""
    for pattern, remedy in _REMEDIES:
        if re.search(pattern, words, re.IGNORECASE):
            return remedy
    return ""


def explained(words: str) -> str:
    """Return a message of Kubernetes with its remedy, if one is known."""
    remedy = remedy_of(words)
    return f"{shortened(words)}; {remedy}" if remedy else shortened(words)


def is_temporary(refusal: Refusal) -> bool:
    """Return whether the same request may succeed later without a change."""
    if refusal.status in {_TIME_OUT, _TOO_MANY, CONFLICT, GONE} or refusal.status >= _SERVER_ERROR:
        return True
    return refusal.status == FORBIDDEN and _QUOTA in refusal.message


def is_unavailable(refusal: Refusal) -> bool:
    """Return whether the server is overloaded or broken, so that it has not decided."""
    return refusal.status == _TOO_MANY or refusal.status >= _SERVER_ERROR


def platform_error(refusal: Refusal) -> PlatformError:
    """Return the PlatformError for a refusal: message, remedy, whether it is permanent."""
    remedy = remedy_of(refusal.message)
    if refusal.status == UNAUTHORIZED:
        remedy = _LOG_IN
    elif refusal.status == FORBIDDEN and not remedy:
        remedy = "docs/platforms/kubernetes.md lists the rights that NNI needs"
    # Rights and logins can be mended in the cluster while the experiment waits.
    permanent = not is_temporary(refusal) and refusal.status not in {UNAUTHORIZED, FORBIDDEN}
    return PlatformError(refusal.message, remedy, permanent=permanent)


def launch_failure(name: AgentName, refusal: Refusal) -> LaunchFailure:
    """Convert the API server's refusal to the LaunchFailure of an agent."""
    error = platform_error(refusal)
    return LaunchFailure(name, refusal.message, error.remedy, error.permanent)


def refused_field(refusal: Refusal) -> str:
    """Return the option of the section that a refusal is about; `podTemplate`: none is known."""
    for text in (*refusal.fields, refusal.message):
        for pattern, field in _FIELDS:
            if re.search(pattern, text):
                return field
    return "podTemplate"


def refused_object(refusal: Refusal, options: Mapping[str, object]) -> PlatformProblem:
    """Return a refusal as a problem of the option that it is about, with its value and remedy."""
    field = refused_field(refusal)
    value = options.get(field, "")
    return PlatformProblem(
        field,
        f"is refused by the cluster: {refusal.message}",
        value if isinstance(value, str) else "",
        remedy_of(refusal.message),
        permanent=not is_temporary(refusal),
    )

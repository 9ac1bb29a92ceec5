"""Container image of agents: the default, and the earlier image that is refused."""

import re
from typing import Final

from svc_trial_runner.fleet.domain.agents import PlatformProblem

IMAGE: Final = "nni/trial-runner"
"""Name of the image of the agent, as the chart and the Dockerfile have it; the tag is a version."""
_PREDECESSOR: Final = re.compile(r"(docker\.io/)?(msranni|nnimsra)/nni(:|@|\Z)")


def default_image(version: str) -> str:
    """Return the name of the default container image of agents for a version of NNI."""
    return f"{IMAGE}:{version}"


def image_problems(field: str, image: str) -> list[PlatformProblem]:
    """Return the problem of an image of NNI 3.0 or earlier, which has another agent.

    Args:
        field: path of the image within the section.
        image: of the section; empty: the default one.
    """
    if not _PREDECESSOR.match(image):
        return []
    rule = "must be an image with the agent of this NNI: msranni/nni has that of NNI 3.0"
    remedy = "derive your image from that of NNI's trial-runner; docs/platforms says how"
    return [PlatformProblem(field, rule, image[:80], remedy)]

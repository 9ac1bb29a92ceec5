"""Image of agents in containers."""

import pytest

from svc_trial_runner.fleet.adapters.agent_image import default_image, image_problems


def test_default_image_has_the_version_as_its_tag() -> None:
    assert default_image("4.0") == "nni/trial-runner:4.0"


@pytest.mark.parametrize(
    "image",
    ["msranni/nni", "msranni/nni:latest", "docker.io/msranni/nni@sha256:0", "nnimsra/nni:v2"],
)
def test_image_with_the_agent_of_an_earlier_nni_is_a_problem(image: str) -> None:
    (problem,) = image_problems("worker.dockerImage", image)

    assert (problem.field, problem.value) == ("worker.dockerImage", image)
    assert "trial-runner" in problem.remedy


@pytest.mark.parametrize("image", ["", "nni/trial-runner:4.0", "example.org/msranni/nni-x"])
def test_other_images_are_no_problem(image: str) -> None:
    assert image_problems("dockerImage", image) == []


def test_long_image_is_shown_by_its_first_80_characters() -> None:
    (problem,) = image_problems("dockerImage", "msranni/nni:" + "a" * 100)

    assert problem.value == "msranni/nni:" + "a" * 68

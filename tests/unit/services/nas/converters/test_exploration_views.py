"""Views of explorations, and checks of their configuration."""

from __future__ import annotations

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.nas.v1 import nas_service_pb2 as pb
from svc_common.errors import InvalidArgumentError
from svc_nas.converters.exploration_views import (
    DOCUMENT_LIMIT_BYTES,
    checked_exploration,
    exploration_view,
)
from svc_nas.domain import events
from svc_nas.domain.progress import Progress

SHA256 = "0f" * 32


def config(
    sha256: str = SHA256, size_bytes: int = 10, model_format: str = "simplified", strategy: str = ""
) -> config_pb2.NasConfig:
    document = value_pb2.BlobRef(sha256=sha256, size_bytes=size_bytes)
    return config_pb2.NasConfig(document=document, model_format=model_format, strategy=strategy)


def test_valid_configuration_is_returned() -> None:
    assert checked_exploration(config()) == config()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (config(sha256="0F" * 32), "nas.document.sha256"),
        (config(sha256=""), "nas.document.sha256"),
        (config(size_bytes=0), "nas.document.size_bytes"),
        (config(size_bytes=DOCUMENT_LIMIT_BYTES + 1), "nas.document.size_bytes"),
        (config(model_format="raw"), "nas.model_format"),
        (config(strategy="x" * 1_001), "nas.strategy"),
    ],
)
def test_refusal_names_the_field(wrong: config_pb2.NasConfig, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        checked_exploration(wrong)

    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("found", "state"),
    [
        ([], pb.EXPLORATION_STATE_STARTING),
        ([events.StateChanged("RUNNING")], pb.EXPLORATION_STATE_RUNNING),
        (
            [events.StateChanged("RUNNING"), events.BudgetChanged(0)],
            pb.EXPLORATION_STATE_PAUSED,
        ),
        ([events.StateChanged("DONE")], pb.EXPLORATION_STATE_EXHAUSTED),
        ([events.ExperimentEnded()], pb.EXPLORATION_STATE_ENDED),
    ],
)
def test_state_follows_from_the_progress(
    found: list[events.Event], state: pb.ExplorationState.ValueType
) -> None:
    progress = Progress()
    for event in found:
        progress.feed(event)

    assert exploration_view("e", progress).state == state


def test_view_names_document_and_strategy() -> None:
    progress = Progress()
    progress.feed(
        events.ExplorationCreated(SHA256, "Random", "E", "simplified", "", "/", 1, seed=0)
    )

    view = exploration_view("e", progress)

    assert (view.config.document.sha256, view.config.strategy) == (SHA256, "Random")

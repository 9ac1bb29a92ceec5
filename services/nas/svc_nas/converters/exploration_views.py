"""Conversion of an exploration's progress to messages, and checks of its configuration."""

import re
from typing import Final

from nni_proto.experiment.v1 import config_pb2
from nni_proto.nas.v1 import nas_service_pb2 as pb
from svc_common.errors import InvalidArgumentError
from svc_nas.domain.progress import Progress

FORMATS: Final = ("simplified", "graph")
"""Formats in which a candidate travels to a trial."""
DOCUMENT_LIMIT_BYTES: Final = 64 * 1024 * 1024
_NAME_LIMIT: Final = 1_000
_HASH: Final = re.compile(r"[0-9a-f]{64}\Z")


def checked_exploration(config: config_pb2.NasConfig) -> config_pb2.NasConfig:
    """Return a `NasConfig` unchanged; raise InvalidArgumentError for its first invalid field.

    Raises:
        InvalidArgumentError: the first rule that is broken.
    """
    if not _HASH.match(config.document.sha256):
        raise InvalidArgumentError(
            "nas.document.sha256",
            "must be 64 lower-case hexadecimal digits",
            config.document.sha256[:80],
            "upload the document with ByteService first",
        )
    if not 0 < config.document.size_bytes <= DOCUMENT_LIMIT_BYTES:
        raise InvalidArgumentError(
            "nas.document.size_bytes",
            f"must be 1 to {DOCUMENT_LIMIT_BYTES}",
            config.document.size_bytes,
            "trace data sets and large objects with nni.trace, so that they travel as calls",
        )
    if config.model_format not in FORMATS:
        raise InvalidArgumentError(
            "nas.model_format",
            f"must be one of {', '.join(FORMATS)}",
            config.model_format[:80],
            "the raw format does not leave its process",
        )
    for name in ("strategy", "evaluator"):
        if len(getattr(config, name)) > _NAME_LIMIT:
            raise InvalidArgumentError(f"nas.{name}", f"must have at most {_NAME_LIMIT} characters")
    return config


def exploration_view(experiment_id: str, progress: Progress) -> pb.Exploration:
    """Convert progress to the message `Exploration`: generation, state, counts and configuration.

    Args:
        experiment_id: id of its experiment.
        progress: of an exploration that was created.
    """
    view = pb.Exploration(
        experiment_id=experiment_id,
        generation=progress.generation,
        state=_state_of(progress),
        candidates=progress.candidates,
        running=progress.running,
        succeeded=progress.succeeded,
        failed=progress.failed,
    )
    if progress.setup is not None:
        view.config.document.sha256 = progress.setup.document_sha256
        view.config.strategy = progress.setup.strategy
        view.config.evaluator = progress.setup.evaluator
        view.config.model_format = progress.setup.model_format
    return view


def _state_of(progress: Progress) -> pb.ExplorationState.ValueType:
    if progress.ended:
        return pb.EXPLORATION_STATE_ENDED
    if progress.exhausted or progress.state == "DONE":
        return pb.EXPLORATION_STATE_EXHAUSTED
    if progress.paused:
        return pb.EXPLORATION_STATE_PAUSED
    if progress.state in {"", "INITIALIZED"}:
        return pb.EXPLORATION_STATE_STARTING
    return pb.EXPLORATION_STATE_RUNNING

"""Child process that checks requests: `python -m svc_dispatcher.check_child PARENT_PID`.

Frames of `adapters.check_frames` come on stdin and go to stdout, one reply to each request.
All work that depends on a user's values is done here: reading them, parsing expressions, drawing
samples. The parent kills a child that takes too long, and starts another.
"""

import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final

from nni.hpo.host.__main__ import kill_with_parent
from nni.hpo.objectives import OutcomeLimit
from nni.hpo.space.feasibility import broken_constraints
from nni_proto.tuning.v1 import algorithm_service_pb2, analysis_service_pb2
from svc_common.errors import InvalidArgumentError, ServiceError
from svc_common.inspection import forbid_inspection
from svc_dispatcher.adapters.check_frames import read_frame, reply_of, write_frame
from svc_dispatcher.adapters.registry_catalog import RegistryCatalog
from svc_dispatcher.converters.algorithm_requests import (
    plain_objective,
    plain_value,
    requested_algorithms,
    trial_outcomes,
)
from svc_dispatcher.domain.values import Check
from svc_dispatcher.usecases.algorithms import examine
from svc_dispatcher.usecases.analyses import find_front

MEMORY_LIMIT_BYTES: Final = 4 * 1024**3
"""Address space of a child: a hostile space may not take the machine's memory."""
_CATALOG: Final = RegistryCatalog()


def examine_algorithms(payload: bytes) -> dict[str, Any]:
    """Decode and check a validation request; return classes, warnings and direction, or raise.

    Raises:
        InvalidArgumentError: the choice is invalid; it names field, rule, value and remedy.
    """
    request = algorithm_service_pb2.ValidateAlgorithmsRequest.FromString(payload)
    if "\0" in request.interpreter:
        raise InvalidArgumentError(
            "interpreter", "must not hold the character NUL", request.interpreter[:200]
        )
    found = examine(
        _CATALOG,
        requested_algorithms(request),
        plain_value(request.search_space, "search_space"),
        [
            plain_value(item, f"search.enqueue[{index}]")
            for index, item in enumerate(request.enqueued)
        ],
    )
    return {
        "classes": [
            [item.kind, item.name, item.class_name, item.code_directory] for item in found.classes
        ],
        "warnings": list(found.warnings),
        "optimize_mode": found.optimize_mode,
        "interpreter": request.interpreter,
    }


def check_configurations(payload: bytes) -> dict[str, Any]:
    """Decode configurations and a space; return the constraint that each violates, or empty."""
    request = analysis_service_pb2.CheckConfigurationsRequest.FromString(payload)
    space = plain_value(request.search_space, "search_space")
    given = [plain_value(value, "configurations") for value in request.configurations]
    return {"broken": broken_constraints(space, given)}


def pareto_front(payload: bytes) -> dict[str, Any]:
    """Decode results; return the Pareto front's trials, number of infeasible and incomplete."""
    request = analysis_service_pb2.FindParetoFrontRequest.FromString(payload)
    found = find_front(
        trial_outcomes(request.outcomes),
        [plain_objective(objective) for objective in request.objectives],
        [OutcomeLimit(limit.metric, limit.max) for limit in request.constraints],
    )
    return {
        "trial_ids": list(found.trial_ids),
        "infeasible": found.infeasible,
        "incomplete": found.incomplete,
    }


WORK: Final[Mapping[Check, Callable[[bytes], dict[str, Any]]]] = {
    Check.ALGORITHMS: examine_algorithms,
    Check.CONFIGURATIONS: check_configurations,
    Check.FRONT: pareto_front,
}


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Read check requests and write their replies, one after another, until the requests end."""
    while (frame := read_frame(requests)) is not None:
        write_frame(replies, answer(frame))


def answer(frame: bytes) -> bytes:
    """Run the check that a frame's first byte names; return its encoded result or error."""
    return reply_of(_result(Check(frame[:1]), frame[1:]))


def _result(check: Check, payload: bytes) -> dict[str, Any] | ServiceError:
    try:
        return WORK[check](payload)
    except ServiceError as error:
        return error
    except Exception as error:  # noqa: BLE001 - rim of the process: values and checks of users
        traceback.print_exc()
        return InvalidArgumentError(
            "search_space", f"could not be checked ({type(error).__name__}: {error})"
        )


def main() -> int:
    """Run the check child: end with the parent, limit memory, serve stdin; return exit code."""
    forbid_inspection()  # else user code of this account could reply to requests of others
    if not kill_with_parent(int(sys.argv[1])):
        return 1
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a user's space check must not get between the replies
    serve(sys.stdin.buffer, replies)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Conformance suite of servers of `TuningService`; a subclass gives the address."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final

import grpc

from nni.hpo.json_value import JsonValue
from nni.hpo.space.parser import contains, parse_space
from nni.testing.tuning_server.client import TuningClient, TuningSession

_ROUNDS: Final = 20
"""Trials per test: more than most algorithms draw before they learn."""
_CROWD: Final = 100
"""Parameters that one request asks for at most in these tests."""
_STATES: Final = ("SUCCEEDED", "FAILED", "EARLY_STOPPED", "USER_CANCELED", "SYS_CANCELED")
_ODD_VALUES: Final[tuple[JsonValue, ...]] = (
    1,
    0.5,
    math.nan,
    math.inf,
    -math.inf,
    None,
    "text",
    [1, 2],
    {"default": 0.5, "size": 3},
    {"size": 3},
)
_NO_SUCH_SESSION: Final = "no-such-session"


class TuningServerConformance(ABC):
    """Tests of the contract of `nni_proto.tuning.v1.TuningService`; subclass it to run them.

    Examples:
        >>> class TestMyServer(TuningServerConformance):
        ...     def address(self):
        ...         return "127.0.0.1:50051"
    """

    search_space: ClassVar[JsonValue] = {
        "rate": {"_type": "loguniform", "_value": [0.0001, 1.0]},
        "momentum": {"_type": "uniform", "_value": [-1, 1]},
        "units": {"_type": "randint", "_value": [8, 64]},
        "kind": {"_type": "choice", "_value": ["relu", "tanh", 3, 0.5, True]},
    }
    """A space of the usual language that the server supports."""

    other_space: ClassVar[JsonValue] = {"width": {"_type": "uniform", "_value": [10, 20]}}
    """Search space that replaces the first."""

    class_args: ClassVar[JsonValue] = None
    """Arguments of the algorithm; None: none."""

    @abstractmethod
    def address(self) -> str:
        """Return `host:port` of a server that is up."""

    def client(self) -> TuningClient:
        """Return a new connection to the server."""
        return TuningClient(self.address())

    def test_sessions_have_names_of_their_own(self) -> None:
        """Every session has an id, and no two have the same."""
        with (
            self.client() as client,
            client.session(self.search_space, self.class_args) as first,
            client.session(self.search_space, self.class_args) as second,
        ):
            assert first.id
            assert second.id
            assert first.id != second.id

    def test_parameters_lie_in_the_space(self) -> None:
        """Every suggestion is a point of the search space; integers and choices keep their type."""
        space = parse_space(self.search_space)
        with (
            self.client() as client,
            client.session(self.search_space, self.class_args) as session,
        ):
            for parameters in play(session, _ROUNDS):
                assert contains(space, parameters), parameters
                assert _is_typed(self.search_space, parameters), parameters

    def test_answer_is_for_the_ids_that_were_asked(self) -> None:
        """Each id is answered at most once; what is missing is deferred or there is no more."""
        ids = list(range(100, 100 + _CROWD))
        with (
            self.client() as client,
            client.session(self.search_space, self.class_args) as session,
        ):
            answer = session.generate(ids)

            assert set(answer.parameters) <= set(ids)
            assert answer.exhausted or len(answer.parameters) + answer.deferred == len(ids)

    def test_nothing_asked_is_nothing_answered(self) -> None:
        """A request for no parameters is no error."""
        with (
            self.client() as client,
            client.session(self.search_space, self.class_args) as session,
        ):
            assert session.generate([]).parameters == {}

    def test_same_seed_and_calls_give_the_same_parameters(self) -> None:
        """A new session with the same inputs repeats itself: replay depends on it."""
        with self.client() as client:
            with client.session(self.search_space, self.class_args, seed=7) as session:
                first = play(session, _ROUNDS)
            with client.session(self.search_space, self.class_args, seed=7) as session:
                assert play(session, _ROUNDS) == first

    def test_sessions_do_not_disturb_each_other(self) -> None:
        """A session beside others responds as if it were alone."""
        with self.client() as client:
            with client.session(self.search_space, self.class_args, seed=7) as session:
                alone = [session.generate([id_]).parameters for id_ in range(5)]
            with (
                client.session(self.search_space, self.class_args, seed=7) as session,
                client.session(self.search_space, self.class_args, seed=8) as other,
            ):
                beside = []
                for id_ in range(5):
                    beside.append(session.generate([id_]).parameters)
                    play(other, 2, first_id=2 * id_)

        assert beside == alone

    def test_trials_may_end_in_any_order_and_state(self) -> None:
        """Whatever becomes of open trials, the session continues."""
        with (
            self.client() as client,
            client.session(self.search_space, self.class_args) as session,
        ):
            given = session.generate(range(len(_STATES))).parameters
            for id_, state in zip(reversed(given), _STATES, strict=False):
                if state == "SUCCEEDED":
                    session.report(id_, 0.5, given[id_])
                session.end(id_, state)

            assert _goes_on(session)

    def test_any_reported_value_is_taken(self) -> None:
        """Users report what they like: NaN, text, maps; none of it breaks the session."""
        with (
            self.client() as client,
            client.session(self.search_space, self.class_args) as session,
        ):
            for id_, value in enumerate(_ODD_VALUES):
                parameters = session.generate([id_]).parameters.get(id_, {})
                session.report(id_, value, parameters, final=False)
                session.report(id_, value, parameters)
                session.end(id_)

            assert _goes_on(session)

    def test_trials_that_it_never_proposed_are_taken(self) -> None:
        """Reports and ends of another session's parameters leave a session able to propose."""
        with self.client() as client:
            with client.session(self.search_space, self.class_args, seed=1) as session:
                foreign = play(session, 1)
            with client.session(self.search_space, self.class_args, seed=2) as session:
                for parameters in foreign:
                    session.report(5000, 0.1, parameters)
                session.end(5000)

                assert _goes_on(session)

    def test_earlier_results_can_be_imported(self) -> None:
        """Results measured elsewhere are taken, an empty list of them too."""
        with self.client() as client:
            with client.session(self.search_space, self.class_args, seed=1) as session:
                known = play(session, 3)
            with client.session(self.search_space, self.class_args, seed=2) as session:
                session.import_data([])
                session.import_data(
                    [{"parameter": one, "value": 0.1 * n} for n, one in enumerate(known)]
                )

                assert _goes_on(session)

    def test_changed_space_holds_for_what_comes_next(self) -> None:
        """After `UpdateSearchSpace` suggestions are points of the new space."""
        space = parse_space(self.other_space)
        with (
            self.client() as client,
            client.session(self.search_space, self.class_args) as session,
        ):
            play(session, 5)
            session.update_search_space(self.other_space)

            for parameters in play(session, 5, first_id=5):
                assert contains(space, parameters), parameters

    def test_senseless_space_is_refused_as_such(self) -> None:
        """A space that cannot be is INVALID_ARGUMENT with a reason: trying again is no use."""
        nonsense: JsonValue = {"x": {"_type": "no-such-type", "_value": [0, 1]}}
        with self.client() as client:
            error = _error(lambda: client.open(nonsense, self.class_args))

        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error
        assert error.details(), "the reason is what the user will see"

    def test_unknown_session_is_not_found(self) -> None:
        """Every call names its session; one that is not there is NOT_FOUND."""
        with self.client() as client:
            lost = TuningSession(client.stub, _NO_SUCH_SESSION, assesses=False)
            calls: tuple[Callable[[], object], ...] = (
                lambda: lost.generate([0]),
                lambda: lost.report(0, 0.5, {}),
                lambda: lost.end(0),
                lambda: lost.import_data([]),
                lambda: lost.update_search_space(self.other_space),
            )
            for call in calls:
                assert _error(call).code() is grpc.StatusCode.NOT_FOUND

    def test_closed_session_is_gone_and_closing_it_again_is_no_error(self) -> None:
        """Closing may be repeated, since its response may be lost; other sessions stay open."""
        with (
            self.client() as client,
            client.session(self.search_space, self.class_args) as other,
        ):
            session = client.open(self.search_space, self.class_args)
            session.close()
            session.close()

            assert _error(lambda: session.generate([0])).code() is grpc.StatusCode.NOT_FOUND
            assert _goes_on(other)


def play(session: TuningSession, count: int, first_id: int = 0) -> list[JsonValue]:
    """Run trials one after another, each with two reports; return their parameters.

    Returns:
        Their parameters; fewer than `count` if the algorithm has no more.
    """
    played: list[JsonValue] = []
    for id_ in range(first_id, first_id + count):
        answer = session.generate([id_])
        for given, parameters in answer.parameters.items():
            value = 0.1 * len(played)
            session.report(given, value + 1.0, parameters, final=False)
            session.report(given, value, parameters)
            session.end(given)
            played.append(parameters)
    return played


def _goes_on(session: TuningSession) -> bool:
    answer = session.generate([9000])
    return 9000 in answer.parameters or answer.exhausted or answer.deferred == 1  # noqa: PLR2004 - that id


def _is_typed(search_space: JsonValue, parameters: JsonValue) -> bool:
    """Return whether integers came as integers, and choices as they were written."""
    assert isinstance(search_space, dict)
    assert isinstance(parameters, dict)
    for name, entry in search_space.items():
        assert isinstance(entry, dict)
        options, value = entry["_value"], parameters[name]
        if entry["_type"] == "randint" and type(value) is not int:
            return False
        if entry["_type"] == "choice":
            assert isinstance(options, list)
            if json.dumps(value) not in {json.dumps(option) for option in options}:
                return False
    return True


def _error(call: Callable[[], object]) -> grpc.RpcError:
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call was answered, and should have been refused")

"""`SharedStudy`: a study whose trials several processes ask for and tell."""

from __future__ import annotations

import os
import socket
import sys
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from nni.errors import NoMoreTrialError
from nni.experiment.environment import experiment_environment, remote_settings
from nni.experiment.errors import NotFoundError, WrongStateError
from nni.experiment.study_arguments import (
    DEFAULT_MODE,
    DEFAULT_TUNER,
    StudyArguments,
    arguments_of,
    check_join,
    check_name,
    study_config,
)
from nni.experiment.study_leases import HeldTrial, LeaseKeeper
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import require_numbers
from nni.hpo.search.outcomes import FrontPoint, Outcomes, Recommendation, StudyTrial
from nni.hpo.search.trial_table import ResultTable
from nni.hpo.space.typed_space import TypedSpace, as_json, is_type_of_space

# Imported in the methods that need them, see `nni.experiment.handle`.
if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni.hpo.search.study import Study
    from nni_proto.common.v1 import value_pb2
    from nni_proto.experiment.v1 import config_pb2, study_service_pb2

_OVER: Final = frozenset({"STOPPED", "NO_MORE_TRIAL"})
"""Reasons for which a study gives no more trials."""
_HOST_CHARACTERS: Final = 30
_ELSEWHERE: Final = {
    "load_state": "its state is in the services; give results of elsewhere to add_trial",
    "set_user_attr": "keep such values in a file, or in those of copy()",
    "user_attrs": "keep such values in a file, or in those of copy()",
    "explanation": "that of its tuner is in the log of the experiment; copy().explanation is that "
    "of a tuner here that knows the same results",
    "stopped_because": "it has no stopping rules; the NoMoreTrialError of ask says why it is over",
}
"""Names of a `Study` that a shared one lacks, with what to use."""


class SharedStudy(ResultTable):
    """Study that several processes share, on one machine or many.

    It has the methods and types of `nni.hpo.Study`; the few that it lacks say what to use. The
    tuner and all results live in the services, as an experiment whose trials its callers run: the
    page and `nnictl` show it, and nothing is lost when a process is killed. The first process that
    names a study creates it, the others join.

    A trial that was asked is under a lease, which this object renews. If the process dies, the
    lease lapses after a minute: the trial is FAILED then, or, with `retry_lost`, its parameters are
    the next that are asked.

    Its methods may be called from several threads. It cannot be used after a fork; a pickled one
    joins the study where it is loaded.

    Args:
        name: of the study, and id of its experiment: 4 to 32 of a-z and 0-9.
        search_space: as that of `nni.hpo.Study`; None: join only.
        tuner: name of a tuner; None: that of the study, `auto` if it is created.
        tuner_args: further arguments of the tuner; None: those of the study.
        optimize_mode: `minimize`, `maximize`, or a dict of metric to mode; None: that of the study,
            `minimize` if it is created.
        seed: seed of the tuner; None: that of the study, a random one if it is created.
        endpoint: address of services on another machine, `https://HOST[:PORT]`, with the token in
            `NNI_TOKEN` or `NNI_TOKEN_FILE`; None: those that `NNI_ENDPOINT` names, else those of
            this machine, which are started if they are not up.
        retry_lost: whether the parameters of a lost trial are asked again, at most twice; None: as
            the study does, no if it is created.

    Raises:
        ValueError: the name or an argument breaks a rule, or differs from the study's.
        TypeError: the tuner is an object.
        NotFoundError: there is no such study, and no search space was given.

    Examples:
        ```python
        from nni.experiment import SharedStudy

        space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
        with SharedStudy("parabola", space, tuner="TPE") as study:
            for _ in range(20):
                trial = study.ask()
                study.tell(trial, trial.parameters["x"] ** 2)
            print(study.best_parameters)
        ```
    """

    def __init__(
        self,
        name: str,
        search_space: JsonValue = None,
        *,
        tuner: str | None = None,
        tuner_args: Mapping[str, JsonValue] | None = None,
        optimize_mode: str | Mapping[str, str] | None = None,
        seed: int | None = None,
        endpoint: str | None = None,
        retry_lost: bool | None = None,
    ) -> None:
        check_name(name)
        self.name = name
        """Name of the study and id of its experiment."""
        typed = search_space is not None and is_type_of_space(search_space)
        self._typed = TypedSpace(search_space) if typed else None
        space = None if search_space is None else as_json(search_space)
        own = StudyArguments(space, tuner, tuner_args, optimize_mode, seed, retry_lost)
        own.check()
        self._endpoint = endpoint
        self._again = (search_space, tuner, tuner_args, optimize_mode, seed, endpoint, retry_lost)
        self._client = _connect(endpoint)
        try:
            self._config = _create_or_join(self._client, name, own)
            self._arguments = arguments_of(name, self._config)
            check_join(name, own, self._arguments)
        except BaseException:
            self._client.close()
            raise
        self._objectives = self._arguments.objectives
        self._caller_id = (
            f"{socket.gethostname()[:_HOST_CHARACTERS]}-{os.getpid()}-" + (uuid.uuid4().hex[:8])
        )
        self._process_id = os.getpid()
        self._leases = LeaseKeeper(
            lambda held: self._client.renew_leases(self.name, self._caller_id, held)
        )
        self._lock = threading.Lock()
        self._asked: dict[int, HeldTrial] = {}
        """Trials that this object has asked for, by number."""

    if not TYPE_CHECKING:  # for a type checker these names do not exist

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, for a name of `Study` with what to use instead."""
            use = _ELSEWHERE.get(name)
            hint = f" as a Study has: {use}" if use else ""
            raise AttributeError(f"a SharedStudy has no {name!r}{hint}", name=name, obj=self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a call that joins the study by name where the pickle is loaded."""
        return _join, (self.name, self._again)

    @property
    def search_space(self) -> JsonValue:
        """Copy of the search space in JSON, as the study had it when this object joined."""
        return deepcopy(self._arguments.search_space)

    @property
    def seed(self) -> int:
        """Seed of the tuner, given or drawn when the study was created."""
        seed = self._arguments.seed
        assert seed is not None, "a study has one from its creation on"
        return seed

    def ask(self, *, timeout_s: float | None = None) -> StudyTrial:
        """Return the next configuration to evaluate; wait until the tuner has one.

        Where the tuner has none left and `retry_lost` is on, it waits for trials of other objects,
        which may be lost; not if this object runs one itself.

        Args:
            timeout_s: longest wait in seconds; None: as long as it takes, as where the tuner waits
                for the results of open trials.

        Returns:
            A trial with an id, for `tell`; the number of the trial in the study.

        Raises:
            NoMoreTrialError: the study was stopped, or the tuner has none left.
            TimeoutError: the tuner had none in that time.
        """
        return self._started(None, timeout_s)

    def _started(self, parameters: value_pb2.Value | None, timeout_s: float | None) -> StudyTrial:
        client = self._usable_client()
        try:
            answer = client.ask_trial(
                self.name, self._caller_id, parameters=parameters, timeout_s=timeout_s
            )
        except WrongStateError as error:
            if error.facts.get("reason") in _OVER:
                raise NoMoreTrialError(str(error)) from error
            raise
        return self._opened(answer)

    def _opened(self, answer: study_service_pb2.AskTrialResponse) -> StudyTrial:
        from nni_wire.values import from_value

        number = int(answer.trial.sequence_id)
        self._leases.hold(
            answer.trial.id, answer.attempt, answer.lease.ToTimedelta().total_seconds()
        )
        with self._lock:
            self._asked[number] = (answer.trial.id, answer.attempt)
        return StudyTrial(number, from_value(answer.trial.parameters), self._typed)

    def tell(self, trial: StudyTrial | int, value: JsonValue, *, stopped: bool = False) -> None:
        """Report a trial's result (None: failed, or stopped); a repetition has no effect.

        Args:
            trial: trial of `ask` of this object, or its id.
            value: a number, a dict whose `default` is one, or a dict with all objectives; None for
                a failed trial.
            stopped: whether a trial without a value was stopped early: then it has not failed.

        Raises:
            ValueError: this object has not asked for the trial, or another result was told before.
            TypeError: the value is neither None nor numeric.
            LeaseLapsedError: this process did not renew the lease in time.
            WrongStateError: the trial was stopped, such as with the study.
        """
        from nni_proto.experiment.v1 import study_service_pb2
        from nni_wire.values import to_value

        number = trial.id if isinstance(trial, StudyTrial) else trial
        if value is not None:
            require_numbers("value must be", value, self._objectives)
        client = self._usable_client()
        with self._lock:
            asked = self._asked.get(number)
        if asked is None:
            raise ValueError(f"trial must be one that this object asked for, got id {number!r}")
        trial_id, attempt = asked
        request = study_service_pb2.TellTrialRequest(
            experiment_id=self.name, trial_id=trial_id, attempt=attempt
        )
        if value is None:
            request.failure = ""
            request.stopped = stopped
        else:
            request.value.CopyFrom(to_value(value))
        self._leases.expect_end(trial_id)
        client.tell_trial(request)
        self._leases.release(trial_id)

    def enqueue(self, parameters: JsonValue) -> None:
        """Enqueue a configuration, to be asked before any proposal of the tuner.

        Args:
            parameters: a configuration of the space; the tuner receives its result.

        Raises:
            ValueError: the configuration lies outside the search space, or violates a constraint.
        """
        self._usable_client().add_trial(self.name, self._allowed(parameters))

    def add_trial(self, parameters: JsonValue, value: JsonValue) -> StudyTrial:
        """Add a trial that was evaluated elsewhere, for the tuner to learn from; return it.

        Args:
            parameters: a configuration of the search space.
            value: its result, see `tell`.

        Returns:
            The trial, with an id of its own.

        Raises:
            ValueError: the configuration lies outside the search space, or violates a constraint.
            TypeError: the value is not numeric.
            NoMoreTrialError: the study was stopped.
        """
        require_numbers("value must be", value, self._objectives)
        trial = self._started(self._allowed(parameters), None)
        self.tell(trial, value)
        return trial

    def _allowed(self, parameters: JsonValue) -> value_pb2.Value:
        """Convert a configuration to a message; raise ValueError outside the search space.

        Raises:
            ValueError: it lies outside the search space.
        """
        from nni.experiment.parameter_checks import broken_parameters
        from nni_wire.values import to_value

        broken = broken_parameters(parameters, self._config)
        if broken:
            raise ValueError(
                f"parameters {parameters!r:.200} must lie in the search space: {broken}"
            )
        return to_value(parameters)

    @property
    def results(self) -> list[tuple[StudyTrial, JsonValue]]:
        """All trials with a result, and the result, in the order of `tell`; read from the services.

        Those of all processes; a result is there once its `tell` has returned.
        """
        from nni_proto.trial.v1 import trial_service_pb2
        from nni_wire.values import from_value

        request = trial_service_pb2.ListTrialsRequest(experiment_id=self.name, with_result=True)
        found = [trial for trial in self._usable_client().trials(request) if trial.HasField("end")]
        found.sort(key=lambda trial: (trial.ended_at.ToNanoseconds(), trial.sequence_id))
        return [
            (
                StudyTrial(int(trial.sequence_id), from_value(trial.parameters), self._typed),
                from_value(trial.final_metric.value),
            )
            for trial in found
        ]

    def _outcomes(self) -> Outcomes:
        outcomes = Outcomes(self._objectives)
        for trial, value in self.results:
            outcomes.add(trial, value)
        return outcomes

    @property
    def best_value(self) -> float:
        """Value of the incumbent: the best result of all processes.

        Raises:
            ValueError: there is no finite result, or there are several objectives.
        """
        return self._outcomes().best()[0]

    @property
    def best_trial(self) -> StudyTrial:
        """The incumbent: the first trial with `best_value`; ValueError if there is none."""
        return self._outcomes().best()[1]

    @property
    def best_parameters(self) -> JsonValue:
        """Configuration of the incumbent; ValueError if there is none."""
        return self.best_trial.parameters

    @property
    def pareto_front(self) -> list[FrontPoint]:
        """The non-dominated trials of all processes, in the order of `tell`.

        With one objective these are all trials with the best value.
        """
        return self._outcomes().front()

    @property
    def recommended(self) -> Recommendation:
        """The trial that a model expects to be best, where results are noisy; see `Study`.

        The model is that of `copy()`, which is made anew at each call.

        Raises:
            ValueError: there is no finite result, or there are several objectives.
        """
        copied, trials = self._copied()
        found = copied.recommended
        return Recommendation(trials[found.trial.id], found.value, found.measured)

    def copy(self) -> Study:
        """Return a study in this process with the results so far, which continues independently.

        Returns:
            A `Study` with the same space, tuner, mode and seed that has learned all results, in the
            order of `tell`; its trials are numbered in this order. Its proposals are others than
            those of the shared study. Failed and open trials are not in it, nor those outside the
            search space: it was changed, or they were added unchecked.

        Raises:
            ValueError: the tuner is not known here, such as one that only the services know.

        Examples:
            ```python
            with SharedStudy("parabola") as study:
                local = study.copy()
            print(local.ask().parameters)  # costs the shared study no trial
            ```
        """
        return self._copied()[0]

    def _copied(self) -> tuple[Study, list[StudyTrial]]:
        """Return a study with the results inside the space, and the trials of these by number."""
        from nni.hpo.search.study import Study

        arguments = self._arguments
        study = Study(
            self.search_space if self._typed is None else self._again[0],
            tuner=arguments.tuner or DEFAULT_TUNER,
            tuner_args=arguments.tuner_args,
            optimize_mode=arguments.optimize_mode or DEFAULT_MODE,
            seed=arguments.seed,
        )
        trials = []
        for trial, value in self.results:
            with suppress(ValueError):  # outside the search space
                study.add_trial(trial.parameters, value)
                trials.append(trial)
        return study, trials

    def state(self) -> dict[str, JsonValue]:
        """Return the state of `copy()` as JSON, such as for a backup.

        Returns:
            JSON object for `load_state` of a `Study` with the same arguments.
        """
        return self.copy().state()

    def stop(self) -> None:
        """Stop the study for all processes: open trials are over, `ask` raises NoMoreTrialError."""
        self._usable_client().stop(self.name)

    def resume(self) -> None:
        """Reopen a stopped study for all processes, with its results.

        Raises:
            WrongStateError: it is not stopped.
        """
        from nni_proto.experiment.v1 import experiment_service_pb2

        client = self._usable_client()
        request = experiment_service_pb2.ResumeExperimentRequest(experiment_id=self.name)
        if client.endpoint.remote is None:
            request.environment.update(experiment_environment())
            request.interpreter = sys.executable
        client.resume(request)

    def close(self) -> None:
        """Close the connection and let open trials lapse; the study continues for others."""
        self._leases.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _usable_client(self) -> ManagerClient:
        """Return the client; raise RuntimeError after a fork.

        Raises:
            RuntimeError: this process is a fork of the one that made it.
        """
        if os.getpid() != self._process_id:
            raise RuntimeError(
                "a SharedStudy cannot be used after a fork: make one in the new process, with the "
                "same name"
            )
        return self._client


def _join(name: str, arguments: tuple[Any, ...]) -> SharedStudy:
    """Return the study with these arguments, where a pickle is loaded."""
    space, tuner, tuner_args, optimize_mode, seed, endpoint, retry_lost = arguments
    return SharedStudy(
        name,
        space,
        tuner=tuner,
        tuner_args=tuner_args,
        optimize_mode=optimize_mode,
        seed=seed,
        endpoint=endpoint,
        retry_lost=retry_lost,
    )


def _connect(url: str | None) -> ManagerClient:
    """Return a client of the services at an address; None: those of the user's environment.

    Raises:
        ExperimentError: they cannot be reached or started.
    """
    from nni.experiment.client import ManagerClient
    from nni.experiment.endpoint import remote_services_endpoint
    from nni.experiment.local_shape import ensure_local_shape

    settings = None if url is None else remote_settings(url)
    if settings is None:
        return ManagerClient(ensure_local_shape())
    return ManagerClient(remote_services_endpoint(settings))


def _create_or_join(
    client: ManagerClient, name: str, own: StudyArguments
) -> config_pb2.ExperimentConfig:
    """Return the configuration of the study, which is created if there is none.

    Raises:
        NotFoundError: there is none, and `own` has no search space.
    """
    try:
        return client.get(name).experiment.config
    except NotFoundError:
        if own.search_space is None:
            raise
    try:
        answer = client.create(
            study_config(name, own),
            port=0,
            url_prefix="",
            environment=experiment_environment(),
            interpreter=sys.executable,
            experiment_id=name,
        )
    except WrongStateError:
        # Another process was first; if it was not that, the study is still missing.
        return client.get(name).experiment.config
    return answer.experiment.config

"""Functions that a trial script calls; `nni` exports them.

State is one object per process, made at the first call: a warm interpreter may import this module
long before it knows which trial it will be.
"""

import os
import sys
from _thread import RLock  # `threading` costs a trial another millisecond

from nni.trial import settings
from nni.trial.result_check import note_unlearnable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nni.trial.channel import NextTrial
    from nni.trial.ports import MetricType, TrialChannel


class _Trial:
    """State of the trial API in this process: channel, current parameters, and a lock."""

    def __init__(self, channel: "TrialChannel", *, strict: bool, multi_phase: bool) -> None:
        self.channel = channel
        self._strict = strict
        self._multi_phase = multi_phase
        self._asked = 0
        self._parameters: object = None
        self.renew_lock()

    def renew_lock(self) -> None:
        """Make a new lock: in a forked child a thread of the parent may hold the old one."""
        self._lock = RLock()

    def next_parameter(self) -> object:
        with self._lock:  # of two threads, one gets the parameters and the other None
            if self._asked and self._strict and not self._multi_phase:
                return None
            parameters = self.channel.parameters(self._asked)
            self._asked += 1
            if self._asked == 1 or parameters is not None:
                self._parameters = parameters
            return parameters

    def current_parameter(self, tag: str | None) -> object:
        if tag is None or not self._asked:
            return self._parameters
        if not isinstance(self._parameters, dict):
            raise KeyError(tag)
        return self._parameters[tag]

    def report(self, kind: "MetricType", value: object, caller: str) -> None:
        if self._strict and not self._asked:
            raise AssertionError(f"call nni.get_next_parameter() before nni.{caller}()")
        self.channel.report(kind, value)
        if kind == "FINAL" and self._strict:
            note_unlearnable(value)


_trials: dict[str, _Trial] = {}
"""Trial of this process, made at the first call: at most one entry."""
_ONLY = "trial"


def _renew_locks() -> None:
    for trial in _trials.values():
        trial.renew_lock()


os.register_at_fork(after_in_child=_renew_locks)


def use_channel(
    channel: "TrialChannel | None", *, strict: bool = True, multi_phase: bool = False
) -> None:
    """Replace the trial channel of this process; None restores that of the environment.

    Args:
        channel: where parameters come from and metrics go; None goes back to what the
            environment says.
        strict: as in an experiment, give parameters once and refuse metrics before that.
        multi_phase: hand out a new set of parameters at every call.
    """
    _trials.clear()
    if channel is not None:
        _trials[_ONLY] = _Trial(channel, strict=strict, multi_phase=multi_phase)


def exchange_channel(
    channel: "TrialChannel", *, strict: bool = True, multi_phase: bool = False
) -> "Callable[[], None]":
    """Replace the trial channel; return a function that restores the previous one.

    Args:
        channel: see `use_channel`.
        strict: as there.
        multi_phase: as there.
    """
    before = dict(_trials)
    use_channel(channel, strict=strict, multi_phase=multi_phase)

    def bring_back() -> None:
        _trials.clear()
        _trials.update(before)

    return bring_back


def wrap_channel(wrap: "Callable[[TrialChannel], TrialChannel]") -> "Callable[[], None]":
    """Wrap the current trial channel; return a function that removes the wrapper.

    Args:
        wrap: returns a channel that uses the one that it is given.
    """
    trial = _current_trial()
    before = trial.channel
    trial.channel = wrap(before)

    def unwrap() -> None:
        trial.channel = before

    return unwrap


def _current_trial() -> _Trial:
    trial = _trials.get(_ONLY)
    # Of two threads that come here at once, setdefault gives both the same one.
    return trial if trial is not None else _trials.setdefault(_ONLY, _from_environment())


def _from_environment() -> _Trial:
    if not settings.in_experiment():
        from nni.trial.standalone import StandaloneTrialChannel

        return _Trial(StandaloneTrialChannel(), strict=False, multi_phase=False)
    from nni.trial.channel import SocketTrialChannel

    warm = sys.modules.get("nni.trial.warm")
    if warm is not None:  # it has forked this process, and learns what to preload for the next
        warm.report_imports()
    path, token = settings.required(settings.SOCKET), settings.required(settings.TOKEN)
    return _Trial(
        SocketTrialChannel(path, token), strict=True, multi_phase=settings.is_multi_phase()
    )


def offers_next_trial() -> bool:
    """Return whether this process may continue with another trial; see `nni.trial.reuse`."""
    from nni.trial.channel import SocketTrialChannel

    channel = _current_trial().channel
    return isinstance(channel, SocketTrialChannel) and channel.offers_next()


def next_trial() -> "NextTrial | None":
    """End this trial with success; wait for another one and switch to it; None if there is none.

    Returns:
        The trial that this process has from now on; None: there is none, and it should end.
    """
    from nni.trial.channel import SocketTrialChannel

    channel = _current_trial().channel
    if not isinstance(channel, SocketTrialChannel):
        return None
    found = channel.next_trial()
    if found is not None:
        use_channel(channel, multi_phase=settings.is_multi_phase())
    return found


def get_next_parameter() -> "Any":  # noqa: ANN401 - scripts index it as they like
    """Return the trial's parameters, once (then None); an empty dict outside an experiment.

    Meant to be called once, before any report. Outside an experiment, the script has to supply
    defaults.

    Returns:
        Values by the names in the search space. Later calls return None, except in a multi-phase
        experiment, where each call returns another set until the tuner has no more. Outside an
        experiment an empty dict, always.

    Raises:
        TrialChannelError: the agent is gone or refuses.

    Examples:
        >>> import nni
        >>> parameters = {"rate": 0.1, **nni.get_next_parameter()}
        >>> parameters["rate"]
        0.1
    """
    return _current_trial().next_parameter()


def get_current_parameter(tag: str | None = None) -> "Any":  # noqa: ANN401 - as above
    """Return the last parameters of `get_next_parameter`, or the value of `tag`; None before.

    Args:
        tag: name of a hyperparameter; None means all of them.

    Returns:
        The dict, or the value of `tag`; None before the first call of `get_next_parameter`.

    Raises:
        KeyError: there is no hyperparameter of that name.

    Examples:
        >>> import nni
        >>> parameters = nni.get_next_parameter()
        >>> nni.get_current_parameter() == parameters
        True
    """
    return _current_trial().current_parameter(tag)


def report_intermediate_result(metric: object) -> None:
    """Report a metric of the running trial; the assessor may stop the trial for it.

    Args:
        metric: a number, or a dict whose key ``default`` is a number; custom algorithms may
            expect any other JSON value. Scalars of numpy and torch are taken as numbers.

    Raises:
        AssertionError: `get_next_parameter` has not been called.
        TypeError: the metric has no form in JSON.
        ValueError: it is longer than 1,000,000 bytes.
        TrialChannelError: the agent is gone or refuses.

    Examples:
        >>> import nni
        >>> for epoch in range(2):
        ...     nni.report_intermediate_result({"default": 0.5 + epoch / 10, "epoch": epoch})
        [...] INFO (nni) Intermediate result: {'default': 0.5, 'epoch': 0}
        [...] INFO (nni) Intermediate result: {'default': 0.6, 'epoch': 1}
    """
    _current_trial().report("PERIODICAL", metric, "report_intermediate_result")


def report_final_result(metric: object) -> None:
    """Report the result of the trial; only the first one of a set of parameters counts.

    Returns when the agent has taken the metric over. Outside an experiment it is printed.

    Args:
        metric: a number, or a dict whose key ``default`` is a number, or with several objectives
            a dict with a number per objective; see `report_intermediate_result`.

    Raises:
        AssertionError: `get_next_parameter` has not been called.
        TypeError: the metric has no form in JSON.
        ValueError: it is longer than 1,000,000 bytes.
        TrialChannelError: the agent is gone or refuses.

    Examples:
        >>> import nni
        >>> nni.report_final_result(0.97)
        [...] INFO (nni) Final result: 0.97
    """
    _current_trial().report("FINAL", metric, "report_final_result")


def get_experiment_id() -> str:
    """Return the id of the experiment, ``STANDALONE`` outside one.

    Returns:
        Letters and digits; ``STANDALONE`` outside an experiment.

    Examples:
        >>> import nni
        >>> nni.get_experiment_id()
        'STANDALONE'
    """
    return settings.experiment_id()


def get_trial_id() -> str:
    """Return the id of the trial, ``STANDALONE`` outside an experiment.

    Returns:
        An id that is unique in the experiment; ``STANDALONE`` outside one.

    Examples:
        >>> import nni
        >>> nni.get_trial_id()
        'STANDALONE'
    """
    return settings.trial_id()


def get_sequence_id() -> int:
    """Return the trial's position in the order of submission, from 0; 0 outside an experiment.

    Returns:
        The position, from 0; 0 outside an experiment.

    Examples:
        >>> import nni
        >>> seed = 1000 + nni.get_sequence_id()
        >>> seed
        1000
    """
    return settings.sequence_id()

"""Redirection of the trial API in this process: parameters come from, and metrics go to, a caller.

An engine that evaluates models in its own process receives what they report by it.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nni.trial.api import exchange_channel, get_next_parameter, wrap_channel
from nni.trial.encoding import encode_metric
from nni.trial.ports import MetricType, TrialChannel

Report = Callable[[object], object]
"""Function that receives a metric: a number, or what else JSON can express."""


class CallbackTrialChannel:
    """Trial channel of fixed parameters that passes metrics, as parsed JSON, to two functions.

    Args:
        parameters: what the trial gets.
        on_intermediate: receives intermediate results.
        on_final: receives results.

    Examples:
        >>> results = []
        >>> channel = CallbackTrialChannel({"x": 1}, print, results.append)
        >>> channel.report("FINAL", 0.5)
        >>> channel.parameters(0), results
        ({'x': 1}, [0.5])
    """

    def __init__(self, parameters: object, on_intermediate: Report, on_final: Report) -> None:
        self._parameters = parameters
        self._report_to: dict[MetricType, Report] = {
            "PERIODICAL": on_intermediate,
            "FINAL": on_final,
        }

    def parameters(self, index: int) -> object:
        """Return the same fixed parameters at every call.

        Args:
            index: which set of parameters; there is one.
        """
        del index
        return self._parameters

    def report(self, kind: MetricType, value: object) -> None:
        """Pass a metric, encoded as JSON and parsed again, to the function of its kind.

        Args:
            kind: what the metric is.
            value: any object that JSON can express.

        Raises:
            TypeError: JSON cannot express the value.
            ValueError: it is too long, or contains itself.
        """
        self._report_to[kind](json.loads(encode_metric(value)))


@contextmanager
def reports_to(
    parameters: object, on_intermediate: Report, on_final: Report
) -> Iterator[CallbackTrialChannel]:
    """Within a block, give the trial API of this process these parameters and report functions.

    Within the block `nni.get_next_parameter` and `nni.get_current_parameter` return the
    parameters, and metrics go to the functions, in the thread that reports. What the functions
    raise reaches the caller of `nni.report_…`. Blocks can be nested. They concern the whole
    process: two threads must not redirect at the same time.

    Args:
        parameters: what the trial gets: a model, for example.
        on_intermediate: receives intermediate results.
        on_final: receives results.

    Yields:
        The channel.

    Examples:
        >>> import nni
        >>> results = []
        >>> with reports_to({"x": 1}, results.append, results.append):
        ...     nni.report_intermediate_result(0.5)
        ...     nni.report_final_result(nni.get_next_parameter()["x"])
        >>> results
        [0.5, 1]
    """
    channel = CallbackTrialChannel(parameters, on_intermediate, on_final)
    bring_back = exchange_channel(channel, strict=False)
    try:
        get_next_parameter()  # so that the current parameters are known without a call
        yield channel
    finally:
        bring_back()


def present_reporter() -> Callable[[MetricType, object], None]:
    """Return the report function of the current channel, unaffected by later redirections.

    Examples:
        >>> outer = []
        >>> with reports_to({}, outer.append, outer.append):
        ...     report = present_reporter()
        ...     with reports_to({}, print, print):
        ...         report("PERIODICAL", 0.5)
        >>> outer
        [0.5]
    """
    found: list[TrialChannel] = []

    def note(channel: TrialChannel) -> TrialChannel:
        found.append(channel)
        return channel

    wrap_channel(note)()
    return found[0].report


class _ChangedFinals:
    """Trial channel that wraps another one and replaces final results by a function's."""

    def __init__(self, channel: TrialChannel, change: Callable[[object], object]) -> None:
        self._channel = channel
        self._change = change

    def parameters(self, index: int) -> object:
        """Return the parameters that the wrapped channel returns."""
        return self._channel.parameters(index)

    def report(self, kind: MetricType, value: object) -> None:
        """Report to the wrapped channel, a final value changed first."""
        self._channel.report(kind, self._change(value) if kind == "FINAL" else value)


@contextmanager
def changed_finals(change: Callable[[object], object]) -> Iterator[None]:
    """Within a block, replace reported final results by what a function returns for them.

    Args:
        change: gets a result, returns what is reported in its place.

    Yields:
        Nothing.

    Examples:
        >>> import nni
        >>> with changed_finals(lambda metric: {"default": metric, "size": 3}):
        ...     nni.report_final_result(0.5)
        [...] INFO (nni) Final result: {'default': 0.5, 'size': 3}
    """
    unwrap = wrap_channel(lambda channel: _ChangedFinals(channel, change))
    try:
        yield
    finally:
        unwrap()

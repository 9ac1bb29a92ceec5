"""Callback of LightGBM: reports metrics, and stops a trial early.

Needs the extra `nni[lightgbm]`.
"""

from typing import Any

from nni.integrations._extras import missing_extra
from nni.integrations._training_reports import BoostingCallback, metrics_by_name

try:
    from lightgbm.callback import CallbackEnv, EarlyStopException
except ImportError as error:
    raise missing_extra("LightGBMCallback", "LightGBM", "lightgbm") from error

__all__ = ["LightGBMCallback"]

_ORDER = 20
"""After the callbacks that print and record, before `early_stopping`, which may end the rest."""


class LightGBMCallback(BoostingCallback):
    """Callback of `lightgbm.train`, `cv` and estimators: reports to a trial, ends training early.

    Reports metrics of the validation data after an iteration, and the result after the last one.
    With `early_stopping` among the callbacks nothing calls back after its stop: call `finish`.

    Args:
        metric: name of the metric, as in `l2`; or with its data set, which is needed where several
            have it, as in `valid_0-l2`; or a dict of key in the report to such a name.
        trial: trial of `nni.hpo.optimize`, which may stop the training. None: the trial of this
            process, which an experiment stops by ending the process; outside an experiment reports
            are printed.
        final: report that is the result of the trial: `last`, or the one with the `min` or `max`
            of `default`.
        every: number of iterations from one report to the next; the first one is reported.

    Raises:
        ValueError: an argument is wrong; in a training, a metric is missing.
        TypeError: `metric` is neither a name nor a dict.

    Examples:
        >>> import lightgbm, numpy
        >>> from nni.integrations import LightGBMCallback
        >>> callback = LightGBMCallback("l2", every=2)
        >>> data = lightgbm.Dataset(numpy.arange(40.0)[:, None] % 2, [0, 1] * 20)
        >>> settings = {"verbose": -1, "num_threads": 1}
        >>> _ = lightgbm.train(settings, data, 2, valid_sets=[data], callbacks=[callback])
        [...] INFO (nni) Intermediate result: 0.2...
        [...] INFO (nni) Final result: 0.2...
    """

    order = _ORDER
    """Position among the callbacks of an iteration."""
    before_iteration = False
    """Whether LightGBM calls it before an iteration rather than after it."""

    def __call__(self, env: CallbackEnv) -> None:
        """Report metrics of each `every`-th iteration, the result after the last; raise to stop."""
        number = env.iteration - env.begin_iteration
        if number % self._every == 0:
            values = metrics_by_name((one[0], one[1], one[2]) for one in _results(env))
            if self._reports.step(values):
                raise EarlyStopException(env.iteration, _results(env))
        if env.iteration == env.end_iteration - 1:
            self.finish()

    def finish(self) -> None:
        """Report the result to the experiment, once; do nothing within `optimize`."""
        self._reports.finish()


def _results(env: CallbackEnv) -> list[Any]:
    return list(env.evaluation_result_list or ())

"""Callback of CatBoost: reports metrics, and stops a trial early.

CatBoost comes with the extra `nni[catboost]`; this module does not import it.
"""

from typing import Any

from nni.integrations._training_reports import BoostingCallback, metrics_by_name

__all__ = ["CatBoostCallback"]


class CatBoostCallback(BoostingCallback):
    """Callback of CatBoost's `fit`: reports to a trial, ends training early; `finish` comes after.

    Reports metrics after an iteration. CatBoost calls nothing after the last one: call `finish`
    after `fit`, or return `result` from the objective of `optimize`. CatBoost has callbacks for
    trainings on the CPU.

    Args:
        metric: name of the metric, as in `Logloss`; or with its data set, which is needed where
            several have it, as in `validation-Logloss`; or a dict of key in the report to such a
            name.
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
        >>> from types import SimpleNamespace
        >>> from nni.integrations import CatBoostCallback
        >>> callback = CatBoostCallback("validation-Logloss")
        >>> info = SimpleNamespace(iteration=1, metrics={"validation": {"Logloss": [0.6]}})
        >>> callback.after_iteration(info)  # CatBoost calls it
        [...] INFO (nni) Intermediate result: 0.6
        True
        >>> callback.finish()
        [...] INFO (nni) Final result: 0.6
    """

    def after_iteration(self, info: Any) -> bool:  # noqa: ANN401 - of CatBoost
        """Report metrics at every `every`-th iteration; return whether the training continues.

        Args:
            info: iteration, from 1, and metrics by data set.

        Returns:
            Whether the training is to go on.
        """
        if (info.iteration - 1) % self._every:
            return True
        values = metrics_by_name(
            (dataset, metric, history[-1])
            for dataset, metrics in info.metrics.items()
            for metric, history in metrics.items()
        )
        return not self._reports.step(values)

    def finish(self) -> None:
        """Report the result to the experiment, once; do nothing within `optimize`."""
        self._reports.finish()

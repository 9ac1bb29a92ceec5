"""Callback of XGBoost: reports metrics, and stops a trial early.

Needs the extra `nni[xgboost]`.
"""

from collections.abc import Iterator
from typing import Any

from nni.integrations._extras import missing_extra
from nni.integrations._training_reports import BoostingCallback, metrics_by_name

try:
    from xgboost import collective
    from xgboost.callback import TrainingCallback
except ImportError as error:
    raise missing_extra("XGBoostCallback", "XGBoost", "xgboost") from error

__all__ = ["XGBoostCallback"]


class XGBoostCallback(BoostingCallback, TrainingCallback):
    """Callback of `xgboost.train`, `cv` and estimators: reports to a trial, ends training early.

    Reports metrics of the evaluation data after an iteration, and the result at the end. In a
    distributed training the first worker reports, and all stop together.

    Args:
        metric: name of the metric, as in `rmse`; or with its data set, which is needed where
            several have it, as in `validation-rmse`; or a dict of key in the report to such a name.
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
        >>> import numpy, xgboost
        >>> from nni.integrations import XGBoostCallback
        >>> callback = XGBoostCallback("rmse")
        >>> data = xgboost.DMatrix(numpy.array([[0.0], [1.0]]), numpy.array([0.0, 1.0]))
        >>> _ = xgboost.train(
        ...     {"nthread": 1}, data, 1, evals=[(data, "train")], verbose_eval=False,
        ...     callbacks=[callback],
        ... )
        [...] INFO (nni) Intermediate result: 0.4...
        [...] INFO (nni) Final result: 0.4...
    """

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ANN401 - of XGBoost
        """Report metrics at every `every`-th iteration; return whether the training is to stop.

        Args:
            model: that is trained.
            epoch: number of the iteration.
            evals_log: dict of data set to a dict of metric to its values so far.

        Returns:
            Whether the training is to stop.
        """
        del model
        if epoch % self._every:
            return False
        is_first = collective.get_rank() == 0
        stop = is_first and self._reports.step(metrics_by_name(_last_results(evals_log)))
        return bool(collective.broadcast(stop, 0)) if collective.is_distributed() else stop

    def after_training(self, model: Any) -> Any:  # noqa: ANN401 - of XGBoost
        """Report the final result; return the model unchanged; XGBoost calls this.

        Args:
            model: that was trained.

        Returns:
            The model.
        """
        self._reports.finish()
        return model


def _last_results(evals_log: Any) -> Iterator[tuple[str, str, float]]:  # noqa: ANN401 - of XGBoost
    for dataset, metrics in evals_log.items():
        for metric, values in metrics.items():
            last = values[-1]
            # Cross-validation has pairs of mean and standard deviation.
            yield dataset, metric, last[0] if isinstance(last, tuple) else last

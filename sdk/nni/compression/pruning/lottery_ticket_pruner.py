"""Pruner that finds winning tickets: it prunes, and sets the weights back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from nni.compression.pruning.iterative_pruner import GrowthPruner
from nni.compression.scheduling.callbacks import Finetuner, Scorer
from nni.compression.scheduling.growth_generators import LotteryTicketTaskGenerator


class LotteryTicketPruner(GrowthPruner):
    """Pruner of an equal part of what is left in each of N iterations, with the weights set back.

    Each iteration trains the model with its masks, prunes it, and sets the weights that are left
    back to those of the given model. The result is the winning ticket before training, and its
    score is that of the untrained ticket; the score of the trained model before the reset is in
    the state of each task in `.tasks`.

    Args:
        model: an unwrapped model; it is not changed.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        pruning_algorithm: `level`, `l1`, `l2`, `fpgm`, `slim`, `apoz`, `mean_activation`,
            `taylorfo` or `admm`: what prunes in each iteration.
        total_iteration: number of iterations, >= 1; the last one reaches the configured ratios.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep models and masks of all iterations.
        finetuner: function that trains the model in place after each pruning, or an evaluator.
        speed_up: remove masked channels in each iteration.
        dummy_input: inputs of the model, which a speedup needs.
        evaluator: function of the model that returns a score, larger is better, or an evaluator,
            which also fine-tunes and trains what `pruning_algorithm` trains; None: the best
            result is the latest.
        reset_weight: set the weights back after each iteration; False fine-tunes from iteration
            to iteration.
        pruning_params: other arguments of the pruner of `pruning_algorithm`.
        speedup: other name of `speed_up`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped or is no module, or an argument has another type.
        ValueError: an argument is out of range.

    Source: Frankle and Carbin, The Lottery Ticket Hypothesis, 2019.

    Examples:
        >>> import tempfile
        >>> from torch import nn
        >>> from nni.compression.pruning import LotteryTicketPruner
        >>> model = nn.Sequential(nn.Linear(4, 10))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.8}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pruner = LotteryTicketPruner(model, config_list, "l1", 3, log_dir=folder)
        ...     pruner.compress()
        ...     task_id, model, masks, _, _ = pruner.get_best_result()
        >>> task_id, int(masks["0"]["bias"].sum())
        (2, 2)
    """

    generator = LotteryTicketTaskGenerator

    def __init__(  # noqa: PLR0913 - the signature of NNI 2.x
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        pruning_algorithm: str,
        total_iteration: int,
        log_dir: str | Path = ".",
        keep_intermediate_result: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        finetuner: Finetuner | None = None,
        speed_up: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        dummy_input: Any = None,  # noqa: ANN401 - inputs of a model
        evaluator: Scorer | None = None,
        reset_weight: bool = True,  # noqa: FBT001, FBT002 - as in NNI 2.x
        pruning_params: Mapping[str, Any] | None = None,
        *,
        speedup: bool = False,
    ) -> None:
        super().__init__(
            model,
            config_list,
            pruning_algorithm,
            total_iteration,
            log_dir,
            keep_intermediate_result,
            finetuner,
            speed_up,
            dummy_input,
            evaluator,
            pruning_params,
            reset_weight=reset_weight,
            speedup=speedup,
        )

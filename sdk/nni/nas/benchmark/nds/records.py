"""Rows of NDS: over 100,000 configurations of several families, mostly trained once.

Source: Radosavovic et al., On Network Design Spaces for Visual Recognition, 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nni.nas.benchmark.schema import BenchmarkSchema


@dataclass(frozen=True, slots=True)
class NdsTrialConfig:
    """Configuration of a trial: network, cells, proposer, optimization, epochs, data set.

    Examples:
        >>> import dataclasses
        >>> [field.name for field in dataclasses.fields(NdsTrialConfig)][:3]
        ['model_family', 'model_spec', 'cell_spec']
    """

    model_family: str
    """`nas_cell`, `residual_bottleneck`, `residual_basic` or `vanilla`."""
    model_spec: dict[str, Any]
    """Of `nas_cell`: `num_nodes_normal`, `num_nodes_reduce`, `depth`, `width`, `aux`, `drop_prob`.
    Of `residual_bottleneck`: `bot_muls`, `ds` (depths), `num_gs` (numbers of groups), `ss`
    (strides) and mostly `ws` (widths). Of the others: `ds`, `ss`, `ws`."""
    cell_spec: dict[str, Any]
    """Of `nas_cell`: `{normal,reduce}_{i}_{op,input}_{x,y}`, where inputs range from 0 to i + 1,
    and `normal_concat`, `reduce_concat`. Of the others: empty."""
    proposer: str
    """Paper that proposed the space: `nasnet`, `darts`, `enas`, `pnas`, `amoeba`, `vanilla`,
    `resnext-a`, `resnext-b`, `resnet`, or `resnet-b` (with bottlenecks)."""
    base_lr: float
    """Initial learning rate."""
    weight_decay: float
    """L2 weight decay."""
    num_epochs: int
    """Planned epochs, during which the learning rate falls to 0 by a cosine."""
    dataset: str
    """`cifar10` or `imagenet`."""
    generator: str
    """`random`: learning rate and weight decay are fixed. `fix_w_d`: width and depth too, of
    `nas_cell` only. `tune_lr_wd`: learning rate and weight decay vary as well."""


@dataclass(frozen=True, slots=True)
class NdsTrialStats:
    """Results of one training: seed, final and best accuracies and losses, size, FLOPs, time.

    Losses that were NaN are None.

    Examples:
        >>> import dataclasses
        >>> [field.name for field in dataclasses.fields(NdsTrialStats)][-1]
        'iter_time'
    """

    config: NdsTrialConfig
    """Network and hyperparameters."""
    seed: int
    """Seed of the training."""
    final_train_acc: float
    """Final accuracy on training data, 0 to 100."""
    final_train_loss: float | None
    """Final cross entropy on training data."""
    final_test_acc: float
    """Final accuracy on test data, 0 to 100."""
    best_train_acc: float
    """Best accuracy on training data, 0 to 100."""
    best_train_loss: float | None
    """Best cross entropy on training data."""
    best_test_acc: float
    """Best accuracy on test data, 0 to 100."""
    parameters: float
    """Trainable parameters in million."""
    flops: float
    """FLOPs in million."""
    iter_time: float
    """Seconds of an iteration."""


@dataclass(frozen=True, slots=True)
class NdsIntermediateStats:
    """Loss and accuracies after an epoch of a training.

    Examples:
        >>> import dataclasses
        >>> [field.name for field in dataclasses.fields(NdsIntermediateStats)]
        ['trial', 'current_epoch', 'train_loss', 'train_acc', 'test_acc']
    """

    trial: NdsTrialStats
    """Training that the results belong to."""
    current_epoch: int
    """Elapsed epochs."""
    train_loss: float | None
    """Cross entropy on training data."""
    train_acc: float
    """Accuracy on training data, 0 to 100."""
    test_acc: float
    """Accuracy on test data, 0 to 100."""


NDS_SCHEMA: Final = BenchmarkSchema("nds", NdsTrialConfig, NdsTrialStats, NdsIntermediateStats)
"""Tables of the database."""

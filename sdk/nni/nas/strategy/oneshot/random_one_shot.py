"""Single-path one-shot: a supernet trained with uniformly sampled paths.

Source: Guo et al., Single Path One-Shot Neural Architecture Search with Uniform Sampling, 2020.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from pytorch_lightning import LightningModule

from nni.mutable import Sample
from nni.nas.oneshot.pytorch.architecture import SampledPath
from nni.nas.oneshot.pytorch.mixed_layer import path_layer_hook
from nni.nas.oneshot.pytorch.path_modules import path_hook
from nni.nas.oneshot.pytorch.path_sampling import UniformSampler
from nni.nas.oneshot.pytorch.profiler import sample_filter
from nni.nas.oneshot.pytorch.sampling_training import SamplingLightningModule
from nni.nas.oneshot.pytorch.supernet import MutationHook
from nni.nas.oneshot.pytorch.training import BaseOneShotLightningModule
from nni.nas.strategy.oneshot.base import OneShotStrategy


class RandomOneShot(OneShotStrategy):
    """Training of a supernet with a random architecture in each step (SPOS).

    It trains weights and prefers no architecture. Search the trained supernet by a second
    experiment on the same space object, with a strategy such as `RegularizedEvolution` and an
    evaluator that only validates. To restore a supernet, convert a new space by `mutate_model` and
    load the state dict.

    Args:
        filter: which architectures are trained: function of a sample, `RangeProfilerFilter`, or
            a dict of its arguments, `{"profiler": profiler, "max": 1e6}`; None for all.
        mutation_hooks: see `OneShotStrategy`.

    Raises:
        TypeError: `filter` is something else.

    Examples:
        >>> RandomOneShot(filter=lambda sample: sample["depth"] < 4).status.value
        'empty'
    """

    def __init__(
        self,
        filter: object = None,  # noqa: A002 - the documented name
        mutation_hooks: Iterable[MutationHook] | None = None,
    ) -> None:
        super().__init__(mutation_hooks)
        self._filter = sample_filter(filter)
        self._path: SampledPath | None = None
        self._sampler: UniformSampler | None = None

    @property
    def path(self) -> SampledPath:
        """Sample that the supernet computes; raises RuntimeError before there is one.

        Raises:
            RuntimeError: no space was converted.
        """
        if self._path is None:
            raise RuntimeError(f"{type(self).__name__} has no supernet; call mutate_model first")
        return self._path

    @property
    def sampler(self) -> UniformSampler:
        """Source of random architectures; raises RuntimeError before there is a supernet.

        Raises:
            RuntimeError: no space was converted.
        """
        if self._sampler is None:
            raise RuntimeError(f"{type(self).__name__} has no supernet; call mutate_model first")
        return self._sampler

    def hook_arguments(self, model_space: Any) -> dict[str, Any]:  # noqa: ANN401 - any mutable module
        """Create the shared sample, with defaults; return it as an argument of the hooks."""
        self._path = SampledPath({})
        for leaf in model_space.simplify().values():
            leaf.add_default(self._path.sample)
        return {"path": self._path}

    def default_mutation_hooks(self) -> list[MutationHook]:
        """Return the hooks that convert primitives to modules of one path."""
        return [path_hook, path_layer_hook]

    def after_mutation(self, model_space: Any) -> None:  # noqa: ANN401 - any mutable module
        """Create the sampler of random architectures from the supernet's leaves and the filter."""
        self._sampler = UniformSampler(model_space, self._filter)

    def configure_oneshot_module(
        self, training_module: LightningModule
    ) -> BaseOneShotLightningModule:
        """Return the module that draws an architecture in each step."""
        return SamplingLightningModule(training_module, self.path, self.sampler)

    def export(self) -> Sample:
        """Return a random architecture, with a warning."""
        warnings.warn(
            f"{type(self).__name__} prefers no architecture and exports a random one; search the "
            "supernet by another strategy",
            stacklevel=2,
        )
        return self.oneshot_module.export()

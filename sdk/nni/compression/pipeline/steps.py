"""Steps of a pipeline: prune, fine-tune, distil, and the base of steps of the user's own."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import nn

from nni.compression.pipeline.budget import SIZES, Measurement, Quantity
from nni.compression.speedup.pruning import prune


class PipelineStep(ABC):
    """Step of a pipeline, which makes one model from another.

    A step of one's own sets `improves` and implements `run`.

    Args:
        name: name in reports and errors; None: the name of its kind.

    Attributes:
        name: see above.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.pipeline import PipelineStep
        >>> class HalfPrecision(PipelineStep):
        ...     kind = "half precision"
        ...     improves = frozenset({"size_bytes"})
        ...     def run(self, model, original, example_inputs):
        ...         return model.half()
        >>> HalfPrecision().name
        'half precision'
    """

    kind: ClassVar[str]
    """Name of a step without one of its own."""
    improves: ClassVar[frozenset[Quantity]]
    """Quantities that the step may improve: an earlier step may leave them beyond the budget."""

    def __init__(self, name: str | None = None) -> None:
        self.name = self.kind if name is None else name

    @abstractmethod
    def run(self, model: nn.Module, original: nn.Module, example_inputs: object) -> nn.Module:
        """Return the model after this step: the given one, changed in place, or a new one.

        Args:
            model: model of the step before, in train mode; may be changed.
            original: model of the user, in eval mode; not to be changed.
            example_inputs: example inputs of both.
        """

    def counted(self, found: Measurement, before: Measurement) -> Measurement:
        """Return the measurement to record for this step; by default the one of its model.

        Args:
            found: what was measured of the model after this step.
            before: what counted after the step before.
        """
        del before
        return found


class PruneStep(PipelineStep):
    """Step that removes channels by `nni.compression.prune`.

    Args:
        sparsity: part of the channels of each group to remove, in [0, 1).
        options: further arguments of `prune`, such as `round_to` and `allow_norm_change`.

    Raises:
        ValueError: `sparsity` is out of range.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pipeline import PruneStep
        >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> PruneStep(0.5).run(model, model, torch.zeros(1, 2))[0]
        Linear(in_features=2, out_features=4, bias=True)
    """

    kind = "prune"
    improves = SIZES

    def __init__(self, sparsity: float, **options: Any) -> None:  # noqa: ANN401 - those of `prune`
        super().__init__(f"prune {sparsity:g}")
        if not 0 <= sparsity < 1:
            raise ValueError(f"sparsity must be in [0, 1), got {sparsity}")
        self._sparsity = sparsity
        self._options = options

    def run(self, model: nn.Module, original: nn.Module, example_inputs: Any) -> nn.Module:  # noqa: ANN401 - inputs of any form
        """Return a smaller copy of the model.

        Args:
            model: model of the step before.
            original: not used.
            example_inputs: example inputs of the model.
        """
        smaller, _ = prune(model, example_inputs, self._sparsity, **self._options)
        return smaller


class FineTuneStep(PipelineStep):
    """Step that trains the model by a function.

    Args:
        train: trains a model in place.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.pipeline import FineTuneStep
        >>> def train(model):
        ...     nn.init.zeros_(model.bias)
        >>> FineTuneStep(train).run(nn.Linear(1, 1), nn.Linear(1, 1), None).bias
        Parameter containing:
        tensor([0.], requires_grad=True)
    """

    kind = "fine-tune"
    improves = frozenset[Quantity]({"metric"})

    def __init__(self, train: Callable[[nn.Module], object], name: str | None = None) -> None:
        super().__init__(name)
        self._train = train

    def run(self, model: nn.Module, original: nn.Module, example_inputs: object) -> nn.Module:
        """Train the model in place by the function; return it.

        Args:
            model: model of the step before.
            original: not used.
            example_inputs: not used.
        """
        self._train(model)
        return model


class DistilStep(PipelineStep):
    """Step that trains the model towards the outputs of the original one, by a function.

    Args:
        train: takes the model and a teacher, which needs no gradients, and trains the model in
            place.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pipeline import DistilStep
        >>> def train(student, teacher):
        ...     inputs = torch.ones(4, 1)
        ...     sgd = torch.optim.SGD(student.parameters(), lr=0.1)
        ...     for _ in range(50):
        ...         loss = nn.functional.mse_loss(student(inputs), teacher(inputs))
        ...         sgd.zero_grad()
        ...         loss.backward()
        ...         sgd.step()
        >>> teacher = nn.Linear(1, 1)
        >>> student = DistilStep(train).run(nn.Linear(1, 1), teacher, None)
        >>> torch.allclose(student(torch.ones(1, 1)), teacher(torch.ones(1, 1)), atol=1e-3)
        True
    """

    kind = "distil"
    improves = frozenset[Quantity]({"metric"})

    def __init__(
        self, train: Callable[[nn.Module, nn.Module], object], name: str | None = None
    ) -> None:
        super().__init__(name)
        self._train = train

    def run(self, model: nn.Module, original: nn.Module, example_inputs: object) -> nn.Module:
        """Train the model, with a frozen copy of the original one as teacher; return it.

        Args:
            model: model of the step before.
            original: model of the user.
            example_inputs: not used.
        """
        with torch.no_grad():
            teacher = copy.deepcopy(original).eval().requires_grad_(requires_grad=False)
        self._train(model, teacher)
        return model

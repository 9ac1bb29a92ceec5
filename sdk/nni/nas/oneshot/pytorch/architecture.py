"""Architecture that a supernet computes: sampled, or a distribution that is learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.mutable import CategoricalMultiple, LabeledMutable, Sample
from nni.nas.oneshot.pytorch.alternatives import alternatives

INITIAL_DEVIATION = 1e-3
"""Standard deviation of the initial logits."""


class SampledPath:
    """Sample that all super-modules of one supernet compute.

    It is shared by reference: a strategy replaces `sample`, and the modules read it in their
    forward pass.

    Args:
        sample: first sample; it has a value for each label of the supernet.
    """

    def __init__(self, sample: Sample) -> None:
        self.sample = sample


class ArchitectureWeights(nn.Module):
    """Logits of each choice of a supernet, by label, and the probabilities that follow from them.

    The logits are no parameters of the supernet, so that optimizers of its weights never see
    them. Inside `draw` all modules with the same label get the same probabilities; outside, each
    call computes them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logits = nn.ParameterDict()
        self._values: dict[str, list[Any]] = {}
        self._leaves: dict[str, LabeledMutable] = {}
        self._drawn: dict[str, Tensor] | None = None
        self._constant = False

    def add_leaf(self, leaf: LabeledMutable) -> None:
        """Add the logits of a leaf, unless its label has some.

        Args:
            leaf: choice among values.

        Raises:
            TypeError: the leaf is no choice among values.
        """
        self._leaves.setdefault(leaf.label, leaf)
        self.add_choice(leaf.label, alternatives(leaf))

    def add_choice(self, label: str, values: list[Any]) -> None:
        """Add the logits of a choice that is no leaf, unless its label has some.

        Args:
            label: name of the choice.
            values: what is chosen from.
        """
        if label not in self._values:
            self._values[label] = values
            initial = torch.randn(len(values)) * INITIAL_DEVIATION
            self._logits[_key(label)] = nn.Parameter(initial)

    def __contains__(self, label: object) -> bool:
        return label in self._values

    @property
    def values(self) -> Mapping[str, list[Any]]:
        """Candidate values of each choice, by label, in the order of its logits."""
        return self._values

    def logits(self, label: str) -> Tensor:
        """Return the logits of a choice: the learned parameter itself, `(values,)`.

        Args:
            label: name of the choice.

        Returns:
            `(values,)`, a parameter.
        """
        parameter: Tensor = self._logits[_key(label)]
        return parameter

    def relaxed(self, logits: Tensor) -> Tensor:
        """Return the weights under which alternatives are mixed: the softmax of the logits.

        Args:
            logits: `(values,)`.

        Returns:
            `(values,)`, sum 1.
        """
        return functional.softmax(logits, -1)

    def weights(self, label: str) -> Tensor:
        """Return a choice's mixing weights, inside `draw` the same at every call.

        Args:
            label: name of the choice.

        Returns:
            `(values,)`, sum 1; differentiable unless `draw` made them constant.
        """
        drawn = self._drawn
        if drawn is None:
            return self.relaxed(self.logits(label))
        if label not in drawn:
            if self._constant:
                with torch.no_grad():
                    drawn[label] = self.relaxed(self.logits(label))
            else:
                drawn[label] = self.relaxed(self.logits(label))
        return drawn[label]

    @contextmanager
    def draw(self, *, constant: bool) -> Iterator[None]:
        """Within a block, draw each choice's weights once; without gradients if constant.

        Args:
            constant: whether gradients to the logits are not needed.

        Yields:
            Once.
        """
        before = self._drawn, self._constant
        self._drawn, self._constant = {}, constant
        try:
            yield
        finally:
            self._drawn, self._constant = before

    def distribution(self) -> dict[str, Tensor]:
        """Return the softmax of each choice's logits by label, without noise; differentiable.

        Returns:
            `(values,)` by label; differentiable.
        """
        return {label: functional.softmax(self.logits(label), -1) for label in self._values}

    def best(self) -> Sample:
        """Return the most probable value of each leaf by label; a list for a multiple choice.

        Returns:
            Values by label: of `CategoricalMultiple`, the indices of the most probable ones in
            order, one for any number.
        """
        return {
            label: chosen(leaf, self.logits(label).detach()) for label, leaf in self._leaves.items()
        }

    def drawn_sample(self) -> Sample:
        """Return a random sample of the distribution of the leaves.

        Returns:
            Values by label.
        """
        noisy = {}
        for label, leaf in self._leaves.items():
            logits = self.logits(label).detach()
            # The largest of logits with Gumbel noise is distributed as the softmax says.
            noise = -torch.empty_like(logits).exponential_().log()
            noisy[label] = chosen(leaf, logits + noise)
        return noisy


class GumbelWeights(ArchitectureWeights):
    """Architecture weights drawn by Gumbel-Softmax; one-hot at temperature 0.

    Source: Jang, Gu, Poole, Categorical Reparameterization with Gumbel-Softmax, 2017, section 2.2.
    """

    def __init__(self) -> None:
        super().__init__()
        self.temperature = 1.0

    def relaxed(self, logits: Tensor) -> Tensor:
        """Return weights drawn by Gumbel-Softmax at the temperature; one-hot at 0."""
        if self.temperature == 0:
            return functional.gumbel_softmax(logits, tau=1.0, hard=True)
        return functional.gumbel_softmax(logits, tau=self.temperature)


def chosen(leaf: LabeledMutable, scores: Tensor) -> Any:  # noqa: ANN401 - the user's value
    """Return a leaf's value with the highest score; for multiple choices a list of the best ones.

    Args:
        leaf: choice among values.
        scores: `(values,)`.

    Returns:
        The value in a sample.
    """
    values = alternatives(leaf)
    if isinstance(leaf, CategoricalMultiple):
        number = 1 if leaf.n_chosen is None else leaf.n_chosen
        return [values[at] for at in sorted(scores.topk(number).indices.tolist())]
    return values[int(scores.argmax())]


def _key(label: str) -> str:
    """Return a label as the name of a parameter, which must not have dots."""
    return label.replace("%", "%25").replace(".", "%2E")

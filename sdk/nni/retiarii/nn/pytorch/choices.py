"""Choices with the arguments of NNI 2.x: `LayerChoice`, `InputChoice`, `ValueChoice`."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from nni.mutable import Categorical, Sample, SampleValidationError
from nni.nas.nn.pytorch import (
    ChosenInputs,
    InputChoice,
    LayerChoice,
    MutationAnchor,
    ReductionType,
    ValueChoice,
)
from nni.nas.nn.pytorch.base import default_value, module_label
from nni.retiarii.deprecation import warn_once
from nni.retiarii.wrapped_models import mutation_label, space_under_construction

Candidates = Sequence[nn.Module] | Mapping[str, nn.Module]


class LegacyLayerChoice(LayerChoice):
    """`LayerChoice` of NNI 2.x: candidates of a list have the names `"0"`, `"1"`, ….

    Args:
        candidates: list of modules, or dict from name to module.
        prior: probability of each candidate in random samples; uniform without.
        label: name of the choice; None for an automatic one.
        **unused: `key`, `return_mask` and `reduction` of NAS 1.0, which have no effect.

    Raises:
        ValueError: there is no candidate, or `prior` holds no probabilities of the candidates.
        TypeError: a candidate is no module, or an argument is unknown.
    """

    def __init__(
        self,
        candidates: Candidates,
        *,
        prior: Sequence[float] | None = None,
        label: str | None = None,
        **unused: object,
    ) -> None:
        warn_once("nn.pytorch.LayerChoice", "nni.nas.nn.pytorch.LayerChoice")
        _check_keywords("LayerChoice", unused, ("key", "return_mask", "reduction"))
        super().__init__(_by_name(candidates), weights=prior, label=mutation_label(label))

    @classmethod
    def create_fixed_module(
        cls,
        sample: Sample,
        candidates: Candidates,
        *,
        prior: Sequence[float] | None = None,
        label: str | None = None,
        **unused: object,
    ) -> nn.Module:
        """Return the candidate that a sample chooses.

        Args:
            sample: value of each label; the name of the candidate, or its position.
            candidates: as for the constructor, and so the following.
            prior: probabilities, which are not needed.
            label: name of the choice.
            **unused: without effect.
        """
        del unused
        label = module_label(mutation_label(label), "LayerChoice")
        named = _by_name(candidates)
        return super().create_fixed_module(
            _with_name(sample, label, named), named, weights=prior, label=label
        )

    @property
    def choices(self) -> list[nn.Module]:
        """Candidates; write `list(layer_choice)`."""
        return list(self)

    @property
    def length(self) -> int:
        """Number of candidates; write `len(layer_choice)`."""
        return len(self)

    def __getitem__(self, name: Any) -> nn.Module:  # noqa: ANN401 - int or str
        return super().__getitem__(self._name(name))

    def __setitem__(self, name: Any, module: nn.Module) -> None:  # noqa: ANN401 - int or str
        super().__setitem__(self._name(name), module)

    def __delitem__(self, name: Any) -> None:  # noqa: ANN401 - int or str
        name = self._name(name)
        self._check_name(name)
        if len(self) == 1:
            raise ValueError(f"the last candidate of {self.label!r} must not be deleted")
        weights = self._choice.weights
        left = [index for index, one in enumerate(self._names) if one != name]
        if weights is not None:
            total = sum(weights[index] for index in left)
            weights = [weights[index] / total for index in left]
        del self._modules[name]
        self._names = [self._names[index] for index in left]
        mutables = vars(self).get("_mutables", [])
        mutables[:] = [one for one in mutables if one is not self._choice]
        self._choice = self.add_mutable(
            Categorical(self._names, weights=weights, label=self._choice.label)
        )
        self._default = default_value(self._choice)

    def _name(self, name: Any) -> Any:  # noqa: ANN401 - as given, if it is no position
        return self._names[name] if isinstance(name, int) else name


class LegacyInputChoice(InputChoice):
    """`InputChoice` of NNI 2.x: exports a single chosen input as an index, not as a list.

    Args:
        n_candidates: number of tensors.
        n_chosen: number that is chosen; None for any subset.
        reduction: `sum`, `mean`, `concat` or `none`.
        prior: probability of each tensor in random samples; uniform without.
        label: name of the choice; None for an automatic one.
        **unused: `choose_from`, `key` and `return_mask` of NAS 1.0, which have no effect.

    Raises:
        TypeError: `n_candidates` is no number, or an argument is unknown.
        ValueError: an argument is outside its range.
    """

    def __init__(
        self,
        n_candidates: int,
        n_chosen: int | None = 1,
        reduction: ReductionType = "sum",
        *,
        prior: Sequence[float] | None = None,
        label: str | None = None,
        **unused: object,
    ) -> None:
        warn_once("nn.pytorch.InputChoice", "nni.nas.nn.pytorch.InputChoice")
        _check_keywords("InputChoice", unused, ("choose_from", "key", "return_mask"))
        super().__init__(
            n_candidates, n_chosen, reduction, weights=prior, label=mutation_label(label)
        )

    @classmethod
    def create_fixed_module(
        cls,
        sample: Sample,
        n_candidates: int,
        n_chosen: int | None = 1,
        reduction: ReductionType = "sum",
        *,
        prior: Sequence[float] | None = None,
        label: str | None = None,
        **unused: object,
    ) -> nn.Module:
        """Return a module that selects and reduces the inputs that a sample chooses.

        Args:
            sample: value of each label; a position, or a list of them.
            n_candidates: as for the constructor, and so the following.
            n_chosen: number that is chosen.
            reduction: how the chosen ones become one.
            prior: probabilities, which are checked only.
            label: name of the choice.
            **unused: without effect.
        """
        del unused
        label = module_label(mutation_label(label), "InputChoice")
        return super().create_fixed_module(
            _with_list(sample, label), n_candidates, n_chosen, reduction, weights=prior, label=label
        )

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample does not fit; None if it fits."""
        return super().check_contains(_with_list(sample, self.label))

    def freeze(self, sample: Sample) -> ChosenInputs:
        """Return the chosen inputs."""
        return super().freeze(_with_list(sample, self.label))


class LegacyValueChoice(ValueChoice):
    """`ValueChoice` of NNI 2.x: an argument of layers, or called in `forward` for its value.

    Inside a network with `model_wrapper` it is a dimension of the search once it is constructed.

    Args:
        candidates: values, all different.
        prior: probability of each value in random samples; uniform without.
        label: name of the choice; None for an automatic one.
    """

    def __init__(
        self,
        candidates: Sequence[Any],
        *,
        prior: Sequence[float] | None = None,
        label: str | None = None,
    ) -> None:
        warn_once("nn.pytorch.ValueChoice", "nni.choice")
        Categorical.__init__(  # that of ValueChoice warns at each call
            self,
            list(candidates),
            weights=None if prior is None else list(prior),
            label=mutation_label(label),
        )
        space = space_under_construction()
        if space is not None:
            space.add_mutable(self)
        self._value = default_value(self)

    def __call__(self) -> Any:  # noqa: ANN401 - one of the candidates
        """Return the value in the network that is built; in a space, the default."""
        return self._value


def placeholder(label: str, **info: Any) -> MutationAnchor:  # noqa: ANN401 - what mutators need
    """Return a module that a mutator finds by its label; write `MutationAnchor(label=...)`.

    Args:
        label: its name.
        **info: what the mutator needs to know.
    """
    warn_once("nn.pytorch.Placeholder", "nni.nas.nn.pytorch.MutationAnchor")
    return MutationAnchor(label=label, **info)


def _check_keywords(kind: str, given: Mapping[str, object], known: Sequence[str]) -> None:
    """Raise TypeError for a keyword argument that is not among the known ones."""
    for name in given:
        if name not in known:
            raise TypeError(f"{kind} got an unexpected keyword argument {name!r}")


def _by_name(candidates: Candidates) -> dict[str, nn.Module]:
    if isinstance(candidates, Mapping):
        return dict(candidates)
    return {str(index): module for index, module in enumerate(candidates)}


def _with_name(sample: Sample, label: str, named: Mapping[str, nn.Module]) -> Sample:
    """Return the sample with a label's position replaced by the candidate's name; else as it is."""
    value = sample.get(label)
    if isinstance(value, int) and 0 <= value < len(named):
        return {**sample, label: list(named)[value]}
    return sample


def _with_list(sample: Sample, label: str) -> Sample:
    """Return a sample in which the value of a label is a list of positions."""
    value = sample.get(label)
    return {**sample, label: [value]} if isinstance(value, int) else sample

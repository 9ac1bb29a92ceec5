"""Choice among layers: `LayerChoice`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from torch import nn

from nni.mutable import Categorical, Sample, SampleValidationError
from nni.nas.nn.pytorch.base import (
    MutableModule,
    check_module,
    default_value,
    module_label,
    recursive_freeze,
)
from nni.nas.space.graph_forms import AlternativesForm
from nni.nas.utils.original_names import record_place

__all__ = ["LayerChoice"]

_RESERVED: Final = {"length", "reduction", "return_mask", "_key", "key", "names"}

Candidates = Sequence[nn.Module] | Mapping[str, nn.Module]
"""Candidates without names, whose names are 0, 1, …; or with names."""


class LayerChoice(MutableModule):
    """Choice of one of several layers; before it is frozen, it computes the default one.

    In a sample it is the name of the layer: its position for a list, its key for a dict. The
    candidates may contain mutables. An unfrozen choice computes its default, the first candidate,
    of one input.

    Args:
        candidates: list of modules, or dict from name to module.
        weights: probability of each candidate in random samples; uniform without.
        label: name of the choice; choices of the same name are one dimension of the space.

    Raises:
        ValueError: there is no candidate, a name is reserved, or `weights` are no probabilities of
            the candidates.
        TypeError: a candidate is no module, or a name is no string.

    Examples:
        >>> layer = LayerChoice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, label="activation")
        >>> layer.names, len(layer), layer["tanh"]
        (['relu', 'tanh'], 2, Tanh())
        >>> layer.freeze({"activation": "tanh"})
        Tanh()
    """

    __jit_unused_properties__: ClassVar = [
        *("label", "choice", "names", "candidates", "default_candidate", "mutables"),
    ]

    def __init__(
        self,
        candidates: Candidates,
        *,
        weights: Sequence[float] | None = None,
        label: str | None = None,
    ) -> None:
        super().__init__()
        named = _named(candidates)
        self._listed = not isinstance(candidates, Mapping)
        self._names = list(named)
        self._choice: Categorical = self.add_mutable(
            Categorical(
                self._names,
                weights=None if weights is None else list(weights),
                label=module_label(label, "LayerChoice"),
            )
        )
        for name, module in named.items():
            try:
                self.add_module(str(name), module)
            except KeyError as error:
                raise ValueError(
                    f"candidates must not have the name {name!r}, which is an attribute of "
                    "modules; give the candidate another name"
                ) from error
        self._default = default_value(self._choice)

    @classmethod
    def create_fixed_module(
        cls,
        sample: Sample,
        candidates: Candidates,
        *,
        weights: Sequence[float] | None = None,
        label: str | None = None,
    ) -> nn.Module:
        """Return the candidate that a sample chooses, frozen, in place of the choice.

        Args:
            sample: value of each label.
            candidates: as for the constructor, and so the following.
            weights: probabilities, which are not needed.
            label: name of the choice.

        Returns:
            The candidate, frozen.
        """
        del weights
        named = _named(candidates)
        choice = Categorical(list(named), label=module_label(label, cls.__name__))
        name = choice.freeze(sample)
        frozen = recursive_freeze(named[name], sample)[0]
        record_place(frozen, str(name), continues=True)
        return frozen

    @property
    def label(self) -> str:
        """Label of the choice."""
        return self._choice.label

    @property
    def choice(self) -> Categorical:
        """Mutable of the choice: the names are its values."""
        return self._choice

    @property
    def names(self) -> list[Any]:
        """Names of the candidates, in order; a copy."""
        return list(self._names)

    @property
    def candidates(self) -> list[nn.Module] | dict[str, nn.Module]:
        """Candidates as a list, or a dict if they were given as one; a copy."""
        if self._listed:
            return list(self)
        return {name: self[name] for name in self._names}

    @property
    def default_candidate(self) -> nn.Module:
        """Candidate that an unfrozen choice computes."""
        return self[self._default]

    def graph_form(self) -> AlternativesForm:
        """Return the choice and its candidates by name, for the graph format."""
        return AlternativesForm(self._choice, {name: self[name] for name in self._names})

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample chooses no candidate, or does not fit the chosen one; or None."""
        error = self._choice.check_contains(sample)
        if error is not None:
            return error
        name = sample[self._choice.label]
        error = check_module(self[name], sample)
        return None if error is None else error.inside(str(name))

    def freeze(self, sample: Sample) -> nn.Module:
        """Return the chosen candidate, frozen; itself if nothing inside is mutable.

        Args:
            sample: value of each label.

        Returns:
            The candidate.

        Raises:
            nni.mutable.SampleValidationError: the sample does not fit the choice or the candidate.
        """
        name = self._choice.freeze(sample)
        try:
            frozen = recursive_freeze(self[name], sample)[0]
        except SampleValidationError as error:
            raise error.inside(str(name)) from None
        record_place(frozen, str(name), continues=frozen is not self[name])
        return frozen

    def forward(self, inputs: Any) -> Any:  # noqa: ANN401 - what candidates take
        """Return the output of the default candidate.

        Args:
            inputs: the one input.

        Returns:
            The output.
        """
        return self.default_candidate(inputs)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[nn.Module]:
        for name in self._names:
            yield self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: Any) -> nn.Module:  # noqa: ANN401 - int or str
        self._check_name(name)
        return self._modules[str(name)]  # type: ignore[return-value]  # no candidate is None

    def __setitem__(self, name: Any, module: nn.Module) -> None:  # noqa: ANN401 - int or str
        self._check_name(name)
        self.add_module(str(name), module)

    def __delitem__(self, name: Any) -> None:  # noqa: ANN401 - int or str
        raise RuntimeError(
            f"candidate {name!r} of {self.label!r} cannot be deleted: the choice has this value; "
            "construct another LayerChoice"
        )

    def _check_name(self, name: object) -> None:
        if name not in self._names:
            raise KeyError(f"{self.label!r} has no candidate {name!r}; it has {self._names}")

    def extra_repr(self) -> str:
        """Return the label, for the text of the module.

        Returns:
            Part of the text.
        """
        return f"label={str(self.label)!r}"


def _named(candidates: Candidates) -> dict[Any, nn.Module]:
    """Check candidates; return them by name, those of a list by position."""
    if isinstance(candidates, Mapping):
        for name in candidates:
            if not isinstance(name, str):
                raise TypeError(f"names of candidates must be strings, got {name!r}")
            if name in _RESERVED:
                raise ValueError(
                    f"candidates must not have a reserved name ({', '.join(sorted(_RESERVED))}), "
                    f"got {name!r}"
                )
        named: dict[Any, nn.Module] = dict(candidates)
    elif isinstance(candidates, Sequence | nn.ModuleList):
        named = dict(enumerate(candidates))
    else:
        raise TypeError(
            f"candidates must be a list of modules or a dict of them, got {candidates!r}"
        )
    for name, module in named.items():
        if not isinstance(module, nn.Module):
            raise TypeError(f"candidate {name!r} must be a torch.nn.Module, got {module!r}")
    if not named:
        raise ValueError("candidates must not be empty")
    return named

"""Outermost network of a search space: `ModelSpace`."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from torch import nn

from nni.common.serializer import SerializableObject
from nni.common.serializer.arguments import recorded_arguments
from nni.common.serializer.record import MARKER, TraceMarker
from nni.common.serializer.tracing import attach
from nni.mutable import Sample, label_scope
from nni.nas.nn.pytorch.base import MutableModule, check_has_no_values, dry_run, frozen_copy
from nni.nas.nn.pytorch.older_samples import construct_as_sampled
from nni.nas.nn.pytorch.parametrized import placed_like, remember_scope, scope_at_construction
from nni.nas.space.base import BaseModelSpace
from nni.nas.space.context import current_model, model_context
from nni.nas.space.graph_forms import GraphForm
from nni.nas.utils.markers import MODEL_WRAPPER

__all__ = ["ModelSpace"]

_CONSTRUCTED: Final = "_nni_constructed"
_INHERITED: Final = "<inherited>"
"""Default of the class keyword, which leaves the prefix of the base class."""


class ModelSpace(MutableModule, BaseModelSpace):
    """Base of the network that is searched: a module whose parts are choices.

    Write the network as usual, with primitives such as `LayerChoice` in place of fixed modules.
    Constructed normally it is a space, in which each choice takes its default; constructed inside
    `nni.nas.space.model_context` it is the network of a sample, a plain module. Its arguments are
    recorded, so it can be dumped and constructed again in another process.

    Class keywords: `label_prefix` is the scope of all labels inside; without it each mutable
    needs a label of its own. Prefixes of nested spaces are joined. `disable_init_wrapper=True`
    leaves the constructor as it is: no record, no scope, no defaults.

    Attributes:
        trace_symbol: the class.
        trace_args: arguments that can only be passed by position; mostly empty.
        trace_kwargs: arguments of the constructor by name.
        is_supernet: whether candidates share weights on purpose. One-shot strategies set it: a
            network frozen from a supernet keeps the trained weights, and is no independent copy.

    Examples:
        >>> from nni.nas.nn.pytorch import LayerChoice, MutableLinear
        >>> import nni
        >>> class Net(ModelSpace, label_prefix="net"):
        ...     def __init__(self, classes=10):
        ...         super().__init__()
        ...         width = nni.choice("width", [16, 32])
        ...         self.hidden = MutableLinear(8, width)
        ...         self.activation = LayerChoice([nn.ReLU(), nn.Tanh()], label="activation")
        ...         self.head = MutableLinear(width, classes)
        >>> space = Net()
        >>> list(space.simplify())
        ['net/width', 'net/activation']
        >>> space.freeze({"net/width": 32, "net/activation": 1})
        Net(
          (hidden): Linear(in_features=8, out_features=32, bias=True)
          (activation): Tanh()
          (head): Linear(in_features=32, out_features=10, bias=True)
        )
    """

    if TYPE_CHECKING:  # TorchScript takes annotations for attributes that it must compile
        trace_symbol: Any
        trace_args: list[Any]
        trace_kwargs: dict[str, Any]

    __jit_unused_properties__: ClassVar = ["args", "mutables"]
    is_supernet = False
    _label_prefix: ClassVar[str | None] = None

    def __init_subclass__(
        cls,
        *,
        label_prefix: str | None = _INHERITED,
        disable_init_wrapper: bool = False,
        **kwargs: Any,  # noqa: ANN401 - class keywords of other bases
    ) -> None:
        """Make the constructor of a subclass record its arguments, and open scope and context.

        Raises:
            ValueError: `label_prefix` is empty or contains `/`.
        """
        super().__init_subclass__(**kwargs)
        setattr(cls, MODEL_WRAPPER, True)
        if label_prefix != _INHERITED:
            if label_prefix is not None and (not label_prefix or "/" in label_prefix):
                raise ValueError(
                    f"label_prefix of {cls.__name__} must not be empty or contain '/', got "
                    f"{label_prefix!r}; leave it out for a space without a prefix"
                )
            cls._label_prefix = label_prefix
        if disable_init_wrapper:
            return
        setattr(cls, MARKER, TraceMarker(cls, kw_only=True, inheritable=False))
        if "__init__" in vars(cls):
            cls.__init__ = _recording(vars(cls)["__init__"])  # type: ignore[method-assign]

    @property
    def args(self) -> dict[str, Any]:
        """Arguments of the constructor by name."""
        return self.trace_kwargs

    def trace_copy(self) -> SerializableObject:
        """Return a copy of the recorded construction, whose arguments can be changed.

        Returns:
            A shell; its method `get` constructs a space.
        """
        return SerializableObject(
            self.trace_symbol, self.trace_args, self.trace_kwargs
        ).trace_copy()

    def freeze(self, sample: Sample) -> Any:  # noqa: ANN401 - usually of this class
        """Return a sample's network: built anew if values were used, else a frozen copy.

        Candidates without mutables inside are used as they are, so the network shares their
        weights with the space. A space is constructed again, with fresh weights everywhere, if it
        registers mutables itself, since its constructor may have used their values; so it is if a
        module inside does and has no `freeze` of its own. Modules that are constructed again have
        the mode, device and dtype of those that they replace.

        Args:
            sample: value of each label.

        Returns:
            A module without mutables.

        Raises:
            nni.mutable.SampleValidationError: the sample is not contained in the space.
        """
        self.validate(sample)
        if not self.is_supernet and _has_used_values(self):
            return placed_like(self.frozen_factory(sample)(), self)
        return frozen_copy(self, sample)[0]

    def frozen_factory(self, sample: Sample) -> Callable[[], Any]:
        """Return a function that constructs the network of a sample from scratch.

        Args:
            sample: value of each label.

        Returns:
            A function without arguments. Each call returns a network with fresh weights.
        """
        symbol, args, kwargs = self.trace_symbol, list(self.trace_args), dict(self.trace_kwargs)
        chosen = dict(sample)

        def build() -> Any:  # noqa: ANN401 - usually of this class
            with model_context(chosen), scope_at_construction(self):
                return symbol(*args, **kwargs)

        return build

    def graph_form(self) -> GraphForm | None:
        """Return None: a space is a graph of its own; raise TypeError if it registers values."""
        check_has_no_values(self)
        return None

    @classmethod
    def load_searched_model(
        cls,
        name: str,
        pretrained: bool = False,  # noqa: FBT001, FBT002 - as specified
        download: bool = False,  # noqa: FBT001, FBT002
        progress: bool = True,  # noqa: FBT001, FBT002
    ) -> nn.Module:
        """Raise ValueError: only spaces of `nni.nas.hub` have searched models.

        Args:
            name: name of the network.
            pretrained: whether to load its weights.
            download: whether the weights may be fetched.
            progress: whether to show the progress of a download.

        Returns:
            The network.

        Raises:
            ValueError: the space has no network of that name.
        """
        raise ValueError(
            f"{cls.__name__} has no searched models, got name={name!r} "
            f"({pretrained=}, {download=}, {progress=}); spaces of nni.nas.hub have some"
        )

    @classmethod
    def extra_oneshot_hooks(cls, strategy: object) -> list[Callable[..., Any]]:
        """Return hooks by which one-shot strategies replace modules that only this space knows.

        Override it in a space with modules of its own that a strategy shall turn into
        weight-sharing ones.

        Args:
            strategy: the strategy that asks.

        Returns:
            Hooks, which precede those of the strategy; none by default.
        """
        del strategy
        return []


def _has_used_values(space: ModelSpace) -> bool:
    """Return whether a constructor may have used values of mutables that `freeze` cannot change."""
    return any(
        isinstance(module, MutableModule)
        and module.mutables
        and (module is space or type(module).freeze is MutableModule.freeze)
        for module in space.modules()
    )


def _recording(constructor: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that records its arguments and runs in the scope of the class."""

    @functools.wraps(constructor)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807 - of any class
        if vars(self).get(_CONSTRUCTED):  # a subclass has opened them
            constructor(self, *args, **kwargs)
            return
        vars(self)[_CONSTRUCTED] = True
        remember_scope(self)
        recorded = recorded_arguments(constructor, args, kwargs, kw_only=True, is_method=True)
        attach(self, type(self), recorded)

        def construct() -> None:
            with _construction(type(self)):
                constructor(self, *recorded[0], **recorded[1])

        construct_as_sampled(self, construct)

    return __init__


@contextmanager
def _construction(cls: type[ModelSpace]) -> Iterator[None]:
    prefix = cls._label_prefix
    if prefix is not None:
        with label_scope(prefix), _defaults(cls):
            yield
    else:
        with _defaults(cls):
            yield


@contextmanager
def _defaults(cls: type) -> Iterator[None]:
    """Record defaults within a block, unless a sample fixes all values."""
    if current_model() is not None:
        yield
    else:
        with dry_run(cls.__name__):
            yield

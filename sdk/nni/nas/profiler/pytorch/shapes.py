"""Tensors that have a shape and no data; sizes may be expressions of mutables.

A `ShapeTensor` passes through the `forward` of a module in place of a tensor. Functions of torch
and methods of tensors are looked up in a table of rules. One without a rule runs on torch's `meta`
device, if the sizes are plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import torch

from nni.mutable import Mutable, MutableExpression
from nni.nas.profiler.pytorch.cases import CannotProfileError, Number, frozen, same

MutableShape = tuple[Number, ...]
"""Sizes of a tensor, each a number or an expression."""


class ShapeTensor:
    """Shape, maybe of expressions, that behaves like a tensor without data.

    Args:
        shape: sizes; the first one is the batch.
        dtype: type of the elements.

    Examples:
        >>> import nni
        >>> images = ShapeTensor((1, nni.choice("width", [4, 8]), 8, 8))
        >>> torch.relu(images).flatten(1).shape
        (1, ((width * 8) * 8))
        >>> torch.cat([images, images], 1).size(1)
        (width + width)
    """

    def __init__(self, shape: Sequence[Number], dtype: torch.dtype = torch.float32) -> None:
        self.shape: MutableShape = tuple(shape)
        self.dtype = dtype
        self.device = torch.device("meta")
        self.requires_grad = False
        self.is_cuda = False

    @classmethod
    def __torch_function__(
        cls,
        func: Any,  # noqa: ANN401 - any function of torch
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - what the function returns
        """Return the result by the function's shape rule, else on the meta device, or raise."""
        del types
        return _applied(getattr(func, "__name__", str(func)), func, tuple(args), dict(kwargs or {}))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a tensor method that computes by shapes; AttributeError if there is none."""
        method = getattr(torch.Tensor, name, None)
        if name.startswith("__") or not callable(method):
            raise AttributeError(f"a tensor without data has no attribute {name!r}")
        return partial(_called, name, method, self)

    def size(self, dim: int | None = None) -> Any:  # noqa: ANN401 - sizes
        """Return the sizes, or that of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def T(self) -> ShapeTensor:
        """Shape with its dimensions reversed."""
        return ShapeTensor(self.shape[::-1], self.dtype)

    def __len__(self) -> int:
        size = self.shape[0]
        if not isinstance(size, int):
            raise CannotProfileError(f"the length of a tensor must be a number, got {size!r}")
        return size

    def __iter__(self) -> Iterator[ShapeTensor]:
        return iter([self[position] for position in range(len(self))])

    def numel(self) -> Number:
        """Return the number of elements."""
        return product(self.shape)

    def _binary(self, other: object) -> ShapeTensor:
        return _broadcast(self, other)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _binary
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = _binary
    __gt__ = __lt__ = __ge__ = __le__ = __iadd__ = __imul__ = __isub__ = __itruediv__ = _binary

    def __neg__(self) -> ShapeTensor:
        return self

    def __matmul__(self, other: ShapeTensor) -> ShapeTensor:
        return _matmul(self, other)

    def __getitem__(self, key: Any) -> ShapeTensor:  # noqa: ANN401 - any index
        return _indexed(self, key)

    def __bool__(self) -> bool:
        raise CannotProfileError(
            "forward depends on the data of a tensor, which a profiler does not have; give the "
            "module a method _shape_forward, or register_shape_inference_formula for its class"
        )

    def __repr__(self) -> str:
        return f"ShapeTensor({self.shape})"


def product(sizes: Sequence[Number]) -> Number:
    """Return the product of sizes, which may be expressions; 1 for none.

    Args:
        sizes: numbers and expressions.

    Examples:
        >>> product([2, 3, 4]), product([])
        (24, 1)
    """
    result: Number = 1
    for size in sizes:
        result = size if isinstance(result, int) and result == 1 else result * size
    return result


def map_shapes(value: Any, function: Callable[[ShapeTensor], Any]) -> Any:  # noqa: ANN401 - nested
    """Return a nested value with its shapes replaced by what a function returns for them.

    Args:
        value: shape, or list, tuple or dict of nested values.
        function: called with each shape.

    Examples:
        >>> map_shapes([ShapeTensor((1, 2)), None], lambda one: one.shape)
        [(1, 2), None]
    """
    if isinstance(value, ShapeTensor):
        return function(value)
    if isinstance(value, Mapping):
        return {key: map_shapes(one, function) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([map_shapes(one, function) for one in value])
    return value


def shapes_in(value: Any) -> list[ShapeTensor]:  # noqa: ANN401 - nested
    """Return the shapes inside a nested value, in order.

    Args:
        value: shape, or list, tuple or dict of nested values.

    Examples:
        >>> shapes_in((ShapeTensor((1, 2)), {"mask": None}))
        [ShapeTensor((1, 2))]
    """
    found: list[ShapeTensor] = []
    map_shapes(value, found.append)
    return found


def frozen_shapes(value: Any, sample: dict[str, Any]) -> Any:  # noqa: ANN401 - nested
    """Return a nested value with expressions of its sizes replaced by a sample's numbers.

    Args:
        value: shape, or list, tuple or dict of nested values.
        sample: value of each label.

    Examples:
        >>> import nni
        >>> frozen_shapes(ShapeTensor((1, nni.choice("width", [4, 8]))), {"width": 8})
        ShapeTensor((1, 8))
    """
    return map_shapes(
        value, lambda one: ShapeTensor([frozen(size, sample) for size in one.shape], one.dtype)
    )


def merged(outputs: Sequence[Any], merge: Callable[[list[Number]], Number]) -> Any:  # noqa: ANN401
    """Merge outputs of alternatives, sizes that differ by `merge`; raise for other structures.

    Args:
        outputs: nested values; plain ones, such as None, must be equal.
        merge: from the sizes of one dimension to its size.

    Raises:
        CannotProfileError: the structures differ.

    Examples:
        >>> merged([ShapeTensor((1, 2)), ShapeTensor((1, 3))], max)
        ShapeTensor((1, 3))
    """
    first = outputs[0]
    if all(isinstance(one, ShapeTensor) and one.ndim == _rank(first) for one in outputs):
        sizes = zip(*(one.shape for one in outputs), strict=True)
        return ShapeTensor(
            [one[0] if same(one) else merge(list(one)) for one in sizes], first.dtype
        )
    if isinstance(first, list | tuple) and all(
        isinstance(one, list | tuple) and len(one) == len(first) for one in outputs
    ):
        return type(first)([merged(parts, merge) for parts in zip(*outputs, strict=True)])
    if all(one is first for one in outputs):
        return first
    raise CannotProfileError(
        f"alternatives must return tensors of one number of dimensions, got {list(outputs)}"
    )


def _rank(value: object) -> int:
    return value.ndim if isinstance(value, ShapeTensor) else -1


def _called(name: str, method: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of torch
    return _applied(name, method, args, kwargs)


def _applied(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - of torch
    rule = _RULES.get(name.strip("_"))
    if rule is not None:
        return rule(*args, **kwargs)
    tensors = shapes_in((args, kwargs))
    if any(isinstance(size, Mutable) for one in tensors for size in one.shape):
        raise CannotProfileError(
            f"torch's {name} has no shape formula, and its input has the mutable shape "
            f"{tensors[0].shape}; give the module that calls it a method _shape_forward, or "
            "register_shape_inference_formula for its class"
        )
    real_args, real_kwargs = map_shapes(
        (args, kwargs), lambda one: torch.empty(one.shape, dtype=one.dtype, device="meta")
    )
    return from_tensors(function(*real_args, **real_kwargs))


def from_tensors(value: Any) -> Any:  # noqa: ANN401 - nested
    """Return a nested value with shapes in place of its tensors.

    Args:
        value: tensor, or list, tuple or dict of nested values.

    Examples:
        >>> from_tensors([torch.zeros(2, 3), 4])
        [ShapeTensor((2, 3)), 4]
    """
    if isinstance(value, torch.Tensor):
        return ShapeTensor(tuple(value.shape), value.dtype)
    if isinstance(value, Mapping):
        return {key: from_tensors(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        made = [from_tensors(one) for one in value]
        return tuple(made) if isinstance(value, tuple) else made
    return value


def _broadcast(first: Any, second: Any = None, *_: Any, **__: Any) -> ShapeTensor:  # noqa: ANN401
    shapes = [one.shape for one in (first, second) if isinstance(one, ShapeTensor | torch.Tensor)]
    if len(shapes) == 1:
        return ShapeTensor(shapes[0])
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return ShapeTensor([_common(*sizes) for sizes in zip(*padded, strict=True)])


def _where(condition: Any, first: Any, second: Any) -> ShapeTensor:  # noqa: ANN401 - tensors, numbers
    return _broadcast(_broadcast(condition, first), second)


def _common(first: Number, second: Number) -> Number:
    """Return the broadcast size of two dimensions: the second if the first is 1, else the first."""
    if isinstance(first, int) and first == 1:
        return second
    return first


def _same_shape(tensor: ShapeTensor, *_: Any, **__: Any) -> ShapeTensor:  # noqa: ANN401
    return tensor


def _cat(tensors: Sequence[ShapeTensor], dim: int = 0, **_: Any) -> ShapeTensor:  # noqa: ANN401
    shape = list(tensors[0].shape)
    total: Number = tensors[0].shape[dim]
    for one in tensors[1:]:
        total = total + one.shape[dim]
    shape[dim] = total
    return ShapeTensor(shape, tensors[0].dtype)


def _stack(tensors: Sequence[ShapeTensor], dim: int = 0) -> ShapeTensor:
    shape = list(tensors[0].shape)
    shape.insert(dim if dim >= 0 else len(shape) + 1 + dim, len(tensors))
    return ShapeTensor(shape, tensors[0].dtype)


def _flatten(tensor: ShapeTensor, start_dim: int = 0, end_dim: int = -1) -> ShapeTensor:
    shape, end = tensor.shape, end_dim % tensor.ndim
    start = start_dim % tensor.ndim
    joined = product(shape[start : end + 1])
    return ShapeTensor((*shape[:start], joined, *shape[end + 1 :]), tensor.dtype)


def _view(tensor: ShapeTensor, *sizes: Any) -> ShapeTensor:  # noqa: ANN401 - numbers or one list
    wanted = list(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes)
    open_at = [at for at, size in enumerate(wanted) if isinstance(size, int) and size == -1]
    if open_at:
        rest = product([size for at, size in enumerate(wanted) if at not in open_at])
        wanted[open_at[0]] = _quotient(tensor.shape, wanted, rest)
    return ShapeTensor(wanted, tensor.dtype)


def _quotient(shape: MutableShape, wanted: Sequence[Number], rest: Number) -> Number:
    """Return the open size of a reshape: number of elements divided by the other sizes."""
    if len(wanted) == 2 and same([shape[0], wanted[0]]):  # noqa: PLR2004 - `view(batch, -1)`
        return product(shape[1:])  # exact, and no division in the expression
    return product(shape) // rest


def _permute(tensor: ShapeTensor, *dims: Any) -> ShapeTensor:  # noqa: ANN401 - numbers or one list
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], list | tuple) else dims
    return ShapeTensor([tensor.shape[dim] for dim in order], tensor.dtype)


def _transpose(tensor: ShapeTensor, dim0: int, dim1: int) -> ShapeTensor:
    shape = list(tensor.shape)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    return ShapeTensor(shape, tensor.dtype)


def _unsqueeze(tensor: ShapeTensor, dim: int) -> ShapeTensor:
    shape = list(tensor.shape)
    shape.insert(dim if dim >= 0 else len(shape) + 1 + dim, 1)
    return ShapeTensor(shape, tensor.dtype)


def _squeeze(tensor: ShapeTensor, dim: int | Sequence[int] | None = None) -> ShapeTensor:
    given = range(tensor.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [one % tensor.ndim for one in given]
    kept = [
        size
        for at, size in enumerate(tensor.shape)
        if at not in dims or not (isinstance(size, int) and size == 1)
    ]
    return ShapeTensor(kept, tensor.dtype)


def _reduced(
    tensor: ShapeTensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002 - torch's signature
    **_: Any,  # noqa: ANN401
) -> ShapeTensor:
    if dim is None:
        return ShapeTensor(())
    dims = {one % tensor.ndim for one in ([dim] if isinstance(dim, int) else dim)}
    shape = [
        1 if at in dims else size
        for at, size in enumerate(tensor.shape)
        if keepdim or at not in dims
    ]
    return ShapeTensor(shape, tensor.dtype)


def _spread(tensor: ShapeTensor, dim: Any = None, *options: Any, **named: Any) -> ShapeTensor:  # noqa: ANN401
    """Return the shape of a variance; `var(unbiased)` and `var(dim, unbiased, keepdim)` occur."""
    if isinstance(dim, bool):
        dim = None
    named.pop("unbiased", None)
    keepdim = named.pop("keepdim", options[1] if len(options) > 1 else False)
    return _reduced(tensor, dim, keepdim, **named)


def _norm(
    tensor: ShapeTensor,
    p: Any = "fro",  # noqa: ANN401 - order of the norm
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002 - torch's signature
    **_: Any,  # noqa: ANN401
) -> ShapeTensor:
    del p
    return _reduced(tensor, dim, keepdim)


def _matmul(first: ShapeTensor, second: ShapeTensor) -> ShapeTensor:
    if second.ndim == 1:
        return ShapeTensor(first.shape[:-1])
    batch = _broadcast(ShapeTensor(first.shape[:-2]), ShapeTensor(second.shape[:-2])).shape
    return ShapeTensor((*batch, *first.shape[-2:-1], second.shape[-1]))


def _attention(query: ShapeTensor, _: ShapeTensor, value: ShapeTensor, *__: Any, **___: Any) -> Any:  # noqa: ANN401
    return ShapeTensor((*query.shape[:-1], value.shape[-1]), query.dtype)


def _chunk(tensor: ShapeTensor, chunks: int, dim: int = 0) -> tuple[ShapeTensor, ...]:
    """Return the parts of a chunk: all of the rounded-up size, the last one smaller if need be.

    A mutable size is taken to be divisible: the number of parts must not depend on a sample.
    """
    shape, size = list(tensor.shape), tensor.shape[dim]
    if not isinstance(size, int):
        parts = [size // chunks] * chunks
    else:
        step = max(1, -(-size // chunks))
        parts = [min(step, size - start) for start in range(0, size, step)]
    return tuple(_resized(shape, dim, part, tensor.dtype) for part in parts)


def _resized(shape: Sequence[Number], dim: int, size: Number, dtype: torch.dtype) -> ShapeTensor:
    changed = list(shape)
    changed[dim] = size
    return ShapeTensor(changed, dtype)


def _expand(tensor: ShapeTensor, *sizes: Any) -> ShapeTensor:  # noqa: ANN401 - numbers or one list
    wanted = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes
    own = (1,) * (len(wanted) - tensor.ndim) + tensor.shape
    return ShapeTensor(
        [
            mine if isinstance(size, int) and size == -1 else size
            for mine, size in zip(own, wanted, strict=True)
        ],
        tensor.dtype,
    )


def _unflatten(tensor: ShapeTensor, dim: int, sizes: Sequence[Number]) -> ShapeTensor:
    at, wanted = dim % tensor.ndim, list(sizes)
    for position, size in enumerate(wanted):
        if isinstance(size, int) and size == -1:
            rest = product([*wanted[:position], *wanted[position + 1 :]])
            wanted[position] = tensor.shape[at] // rest
    return ShapeTensor((*tensor.shape[:at], *wanted, *tensor.shape[at + 1 :]), tensor.dtype)


def _adaptive_pool(tensor: ShapeTensor, output_size: Any, *_: Any) -> ShapeTensor:  # noqa: ANN401
    sizes = output_size if isinstance(output_size, tuple | list) else None
    spatial = tensor.ndim - 2
    wanted = [
        own if size is None else size
        for own, size in zip(tensor.shape[2:], sizes or [output_size] * spatial, strict=True)
    ]
    return ShapeTensor((*tensor.shape[:2], *wanted), tensor.dtype)


def _padded(tensor: ShapeTensor, pad: Sequence[int], *_: Any, **__: Any) -> ShapeTensor:  # noqa: ANN401
    """Return the shape with numbers added before and after each dimension, the last one first."""
    shape = list(tensor.shape)
    for at, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        shape[-at] = shape[-at] + (before + after)
    return ShapeTensor(shape, tensor.dtype)


def _indexed(tensor: ShapeTensor, key: Any) -> ShapeTensor:  # noqa: ANN401 - any index
    keys = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in keys:
        at = keys.index(Ellipsis)
        given = sum(one is not None for one in keys) - 1
        keys[at : at + 1] = [slice(None)] * (tensor.ndim - given)
    shape: list[Number] = []
    sizes = list(tensor.shape)
    for one in keys:
        if one is None:
            shape.append(1)
        elif isinstance(one, slice):
            shape.append(_sliced(sizes.pop(0), one))
        elif isinstance(one, int):
            sizes.pop(0)
        else:
            raise CannotProfileError(f"an index must be a number or a slice, got {one!r}")
    return ShapeTensor([*shape, *sizes], tensor.dtype)


def _sliced(size: Number, part: slice) -> Number:
    if part.start is None and part.stop is None and part.step is None:
        return size
    if not isinstance(size, Mutable):
        if not any(isinstance(one, Mutable) for one in (part.start, part.stop)):
            return len(range(*part.indices(size)))
        size = MutableExpression.to_int(size)
    if part.step not in {None, 1}:
        raise CannotProfileError(f"a slice of the mutable size {size!r} must have no step")
    start = 0 if part.start is None else part.start
    stop = size if part.stop is None else part.stop
    start, stop = (size + one if isinstance(one, int) and one < 0 else one for one in (start, stop))
    return MutableExpression.min(stop, size) - start


_UNARY: Final = (
    "abs alpha_dropout batch_norm celu clamp clone contiguous detach dropout dropout2d elu erf exp "
    "float gelu group_norm half hardsigmoid hardswish hardtanh instance_norm layer_norm leaky_relu "
    "log log_softmax mish neg normalize relu relu6 rsqrt selu sigmoid silu sin cos "
    "softmax softplus softsign sqrt square tanh to type zeros_like ones_like requires_grad cumsum "
    "rand_like empty_like detach cuda cpu double int long bool nan_to_num"
)
_BINARY: Final = (
    "add sub mul div true_divide maximum minimum eq ne lt gt ge le fmod pow masked_fill"
)

_RULES: Final[dict[str, Callable[..., Any]]] = {
    **dict.fromkeys(_UNARY.split(), _same_shape),
    **dict.fromkeys(_BINARY.split(), _broadcast),
    **dict.fromkeys(("mean", "sum", "amax", "amin", "prod"), _reduced),
    **dict.fromkeys(("var", "std"), _spread),
    **dict.fromkeys(("view", "reshape"), _view),
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    **dict.fromkeys(("matmul", "bmm", "mm"), _matmul),
    **dict.fromkeys(("transpose", "swapaxes"), _transpose),
    **{f"adaptive_{kind}_pool{dims}d": _adaptive_pool for kind in ("avg", "max") for dims in "123"},
    "chunk": _chunk,
    "expand": _expand,
    "flatten": _flatten,
    "norm": _norm,
    "pad": _padded,
    "permute": _permute,
    "squeeze": _squeeze,
    "scaled_dot_product_attention": _attention,
    "stack": _stack,
    "unflatten": _unflatten,
    "unsqueeze": _unsqueeze,
    "where": _where,
}
"""Name of a function, without the underscores of its variant in place, to its rule."""

"""Perplexity of a language model on batches of tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.compression.base.model_runs import call_model, eval_mode

Tokens = Tensor | Mapping[str, Tensor]
"""Token ids, or the inputs of a language model by name, of which `input_ids` are the token ids."""


def perplexity(model: nn.Module, batches: Iterable[Tokens]) -> float:
    """Return the exponential of a language model's mean loss on the next token, in eval mode.

    Args:
        model: Takes `(batch, length)` token ids, and returns logits `(batch, length, vocabulary)`,
            an object with `logits`, or a tuple or dict that begins with them. It runs in eval mode
            without gradients and is the same afterwards.
        batches: Token ids, `(batch, length)` each, of length 2 at least; or inputs by name with
            `input_ids`, and maybe `attention_mask`: tokens whose mask is 0 are not predicted.

    Returns:
        At least 1; infinity if it overflows.

    Raises:
        ValueError: there is no token to predict, or a batch has fewer than two tokens.
        TypeError: the model returns no logits.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import perplexity
        >>> class Uniform(nn.Module):
        ...     def forward(self, tokens):
        ...         return torch.zeros(*tokens.shape, 16)
        >>> round(perplexity(Uniform(), [torch.zeros(2, 8, dtype=torch.long)]), 3)
        16.0
    """
    loss, count = 0.0, 0
    with eval_mode(model), torch.no_grad():
        for batch in batches:
            losses = _losses(model, batch)
            loss += float(losses.sum())
            count += losses.numel()
    if count == 0:
        raise ValueError("batches must hold tokens to predict, got none")
    try:
        return math.exp(loss / count)
    except OverflowError:
        return math.inf


def _losses(model: nn.Module, batch: Tokens) -> Tensor:
    """Return the loss of each predicted token, `(tokens,)`, without those that a mask excludes."""
    inputs = dict(batch) if isinstance(batch, Mapping) else {"input_ids": batch}
    tokens = inputs["input_ids"]
    if tokens.dim() != 2 or tokens.shape[1] < 2:  # noqa: PLR2004 - (batch, length), a next token
        raise ValueError(
            f"a batch must be (batch, length >= 2) token ids, got {tuple(tokens.shape)}"
        )
    output = call_model(model, inputs if isinstance(batch, Mapping) else batch)
    logits = logits_of(output)[:, :-1].flatten(0, 1).double()
    losses = functional.cross_entropy(logits, tokens[:, 1:].flatten(), reduction="none")
    mask = inputs.get("attention_mask")
    return losses if mask is None else losses[mask[:, 1:].flatten() != 0]


def logits_of(output: object) -> Tensor:
    """Return the logits in what a language model returned; raise TypeError if there are none.

    Args:
        output: A tensor, an object with `logits`, or a tuple, list or dict that begins with them.

    Raises:
        TypeError: there is no tensor.

    Examples:
        >>> import torch
        >>> logits_of((torch.ones(1), "cache"))
        tensor([1.])
    """
    found = getattr(output, "logits", output)
    if isinstance(found, dict):
        found = next(iter(found.values()), None)
    elif isinstance(found, tuple | list):
        found = found[0] if found else None
    if not isinstance(found, Tensor):
        raise TypeError(f"the model must return logits, got {type(output).__name__}")
    return found

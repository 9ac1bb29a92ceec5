"""Modules whose own code holds sizes: attributes first, then the sizes in calls."""

import pickle

import torch

from nni.compression.speedup.adaptation import changed_sizes
from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.pruning import choose_units, l1_scores, prune
from tests.unit.sdk.nni.compression.attention_model import encoder, tokens
from tests.unit.sdk.nni.compression.models import build, randomised


def test_attributes_that_equal_an_old_size_get_the_new_one() -> None:
    model, tokens = build("attention")

    smaller, report = prune(model, tokens, 0.5)

    attention = smaller.attention
    assert (attention.num_heads, attention.head_dim, attention.all_heads) == (2, 3, 6)
    assert not attention._forward_pre_hooks
    assert report.error <= 1e-4


def test_sizes_that_are_computed_are_replaced_in_calls() -> None:
    model, tokens = build("windows")

    smaller, report = prune(model, tokens, 0.5)
    copied = pickle.loads(pickle.dumps(smaller))

    assert smaller.attention.qkv.out_features == 18
    assert smaller.attention.table.shape == (9, 2)
    assert smaller.attention.num_heads == 4
    assert report.error <= 1e-4
    assert torch.equal(copied(tokens.repeat(3, 1)), smaller(tokens.repeat(3, 1)))


def test_new_sizes_of_values_follow_the_removed_units() -> None:
    model, inputs = build("plain")
    dependencies = find_dependencies(model, inputs)
    removed = choose_units(dependencies, l1_scores(model, dependencies), 0.5)
    [flat] = [
        node.outputs[0] for node in dependencies.graph.nodes if node.op.endswith("_unsafe_view")
    ] or [node.outputs[0] for node in dependencies.graph.nodes if node.op == "aten.view"]

    assert changed_sizes(dependencies, removed, flat) == {1: 96}


def test_a_module_that_runs_with_a_wrong_number_of_heads_is_adapted() -> None:
    # Two of four heads of two features fill `unflatten(-1, (4, -1))` as well, as four of one.
    model = randomised(encoder(layers=1, heads=4, head_dim=2))

    smaller, report = prune(model, tokens(), sparsity=0.5)

    assert smaller.attention[0].heads == 2
    assert smaller.attention[0].query.out_features == 4
    assert report.error < 1e-4

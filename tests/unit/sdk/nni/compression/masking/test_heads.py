import torch

from nni.compression.masking.heads import head_norms, lowest_heads, lowest_heads_of_all


def lost(kept: torch.Tensor) -> list[int]:
    return (~kept).nonzero().flatten().tolist()


def test_the_norm_of_a_head_is_the_mean_over_its_projections() -> None:
    weights = [torch.randn(6, 3, generator=torch.Generator().manual_seed(at)) for at in range(3)]

    for order in (1, 2):
        found = head_norms(weights, 2, order)

        for head in range(3):
            blocks = [one[2 * head : 2 * head + 2].flatten() for one in weights]
            expected = sum(float(one.norm(order)) for one in blocks) / 3
            assert abs(float(found[head]) - expected) < 1e-5


def test_heads_that_were_pruned_go_first_and_one_head_stays() -> None:
    scores = torch.tensor([3.0, 1.0, 2.0])
    kept = torch.tensor([False, True, True])

    assert lost(lowest_heads(scores, kept, 1)) == [0]
    assert lost(lowest_heads(scores, kept, 2)) == [0, 1]
    assert lost(lowest_heads(scores, kept, 9)) == [0, 1]
    assert lost(lowest_heads(scores, kept, 0)) == []


def test_heads_of_several_layers_are_ranked_together() -> None:
    scores = [torch.tensor([1.0, 2.0, 9.0]), torch.tensor([3.0, float("nan")])]
    kept = [torch.ones(3, dtype=torch.bool), torch.ones(2, dtype=torch.bool)]

    assert [lost(one) for one in lowest_heads_of_all(scores, kept, 3)] == [[0, 1], [1]]
    assert [lost(one) for one in lowest_heads_of_all(scores, kept, 4)] == [[0, 1], [1]]


def test_ties_go_to_the_first_layer_and_head() -> None:
    scores = [torch.ones(2), torch.ones(2)]
    kept = [one > 0 for one in scores]

    assert [lost(one) for one in lowest_heads_of_all(scores, kept, 1)] == [[0], []]

from typing import Any

import pytest
import torch
from torch import nn

from nni.compression import TorchEvaluator
from nni.compression.base import ConfigListError, ModuleWrapper
from nni.compression.pruning import TransformerHeadPruner
from nni.compression.speedup import ModelSpeedup
from tests.unit.sdk.nni.compression.attention_model import Encoder, encoder, names_of, tokens
from tests.unit.sdk.nni.compression.models import randomised


def entries(sparsity: float) -> list[dict[str, Any]]:
    return [{"op_types": ["Linear"], "sparsity": sparsity}]


def pruner_of(model: Encoder, sparsity: float = 0.5, **options: Any) -> TransformerHeadPruner:
    options.setdefault("attention_name_groups", names_of(len(model.attention)))
    return TransformerHeadPruner(model, entries(sparsity), options.pop("width", 2), **options)


def zero_rows(mask: torch.Tensor) -> int:
    return int((~mask.bool().any(1)).sum())


@pytest.mark.claim("compression", 51)
@pytest.mark.parametrize(("sparsity", "heads"), [(0.5, 6), (0.25, 3)])
def test_heads_lose_rows_of_the_inputs_and_columns_of_the_output(
    sparsity: float, heads: int
) -> None:
    model = encoder(layers=1, heads=12, head_dim=64)
    pruner = pruner_of(model, sparsity, width=64)

    _, masks = pruner.compress()

    query, key, value, dense = names_of(1)[0]
    for name in (query, key, value):
        assert zero_rows(masks[name]["weight"]) == 64 * heads
        assert torch.equal(masks[name]["bias"].bool(), masks[name]["weight"].bool().any(1))
    assert zero_rows(masks[dense]["weight"].T) == 64 * heads
    assert masks[dense]["bias"].all()
    rows = masks[query]["weight"][:, 0]
    assert torch.equal(masks[dense]["weight"][0], rows)
    assert len(pruner.pruned_heads[0]) == heads
    for head in range(12):
        kept = float(head not in pruner.pruned_heads[0])
        assert set(rows[64 * head : 64 * head + 64].tolist()) == {kept}


@pytest.mark.claim("compression", 52)
def test_heads_of_all_layers_are_ranked_together() -> None:
    model = encoder(layers=12, heads=12, head_dim=2)
    with torch.no_grad():
        model.attention[3].value.weight.mul_(1e-3)
        model.attention[3].query.weight.mul_(1e-3)
        model.attention[3].key.weight.mul_(1e-3)
    pruner = pruner_of(model, 0.5, global_sort=True)

    pruner.compress()

    lost = [len(heads) for heads in pruner.pruned_heads.values()]
    assert sum(lost) == 72
    assert max(lost) == lost[3] == 11  # its heads are the smallest, and one stays


@pytest.mark.claim("compression", 53)
@pytest.mark.parametrize(
    ("config_list", "options", "message"),
    [
        (
            [{"op_names": ["attention.0.query"], "sparse_ratio": 0.25},
             {"op_types": ["Linear"], "sparse_ratio": 0.5}],
            {}, "needs one sparsity for the attention",
        ),
        (
            [{"op_names": names_of()[0], "sparse_ratio": 0.25},
             {"op_names": names_of()[1], "sparse_ratio": 0.5}],
            {"global_sort": True}, "needs one sparsity for all layers with global_sort",
        ),
        (entries(0.5), {"head_hidden_dim": 3}, "head_hidden_dim must divide the 8 features"),
        (entries(0.5), {"ranking_criterion": "taylorfo"}, "'taylorfo' needs trainer and optimizer"),
        (entries(0.5), {"num_iterations": 2}, "num_iterations > 1 needs trainer and optimizer"),
        (entries(0.5), {"ranking_criterion": "l1_activation"}, "needs forward_runner"),
        (entries(0.5), {"ranking_criterion": "l3_weight"}, "ranking_criterion must be one of"),
        (entries(0.5), {"num_iterations": 0}, "num_iterations must be >= 1, got 0"),
        (entries(0.0), {}, r"needs a sparsity in \(0, 1\) for attention.0.query, got 0.0"),
        ([{"op_names": ["attention.0.key"], "sparsity": 0.5}], {}, "selects a part of the attent"),
        ([{"op_names": ["classifier"], "sparsity": 0.5}], {}, "selects no projection"),
        (
            [{"op_types": ["Linear"], "sparse_ratio": 0.5, "granularity": "in_channel"}],
            {}, "has a granularity for",
        ),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(
    config_list: list[Any], options: dict[str, Any], message: str
) -> None:
    model = encoder()
    given = {"head_hidden_dim": 2, "attention_name_groups": names_of(), **options}

    with pytest.raises(ValueError, match=message):
        TransformerHeadPruner(model, config_list, **given)
    assert not any(isinstance(one, ModuleWrapper) for one in model.modules())


def test_errors_of_the_configuration_have_their_type() -> None:
    with pytest.raises(ConfigListError):
        TransformerHeadPruner(encoder(), entries(0.0), 2, names_of())


def test_groups_are_found_and_other_layers_are_left() -> None:
    model = encoder()

    pruner = TransformerHeadPruner(model, entries(0.5), 2, dummy_input=tokens())

    assert [list(one) for one in pruner.attention_name_groups] == names_of()
    assert set(pruner.get_modules_wrapper()) == {name for group in names_of() for name in group}
    assert isinstance(model.classifier, nn.Linear)


def test_layers_may_have_ratios_of_their_own() -> None:
    first, second = names_of()
    config_list = [
        {"op_names": first, "sparsity": 0.5},
        {"op_names": second, "sparsity": 0.25},
    ]
    pruner = TransformerHeadPruner(encoder(), config_list, 2, names_of())

    pruner.compress()

    assert {place: len(one) for place, one in pruner.pruned_heads.items()} == {0: 2, 1: 1}


@pytest.mark.parametrize("criterion", ["l1_weight", "l2_weight"])
def test_heads_are_ranked_by_the_norm_of_their_projections(criterion: Any) -> None:
    model = encoder(layers=1)
    with torch.no_grad():
        for name, scale in zip(names_of(1)[0][:3], (0.0, 0.1, 0.0), strict=True):
            model.get_submodule(name).weight[2:4] *= scale

    pruner = pruner_of(model, 0.25, ranking_criterion=criterion)
    pruner.compress()

    assert pruner.pruned_heads == {0: {1}}


@pytest.mark.parametrize("criterion", ["l1_activation", "l2_activation"])
def test_heads_are_ranked_by_their_outputs(criterion: Any) -> None:
    model = encoder(layers=1)
    with torch.no_grad():
        model.attention[0].value.weight[6:] *= 1e-3
        model.attention[0].value.bias[6:] = 0

    pruner = pruner_of(
        model, 0.25, ranking_criterion=criterion, forward_runner=lambda one: one(tokens())
    )
    pruner.compress()

    assert pruner.pruned_heads == {0: {3}}


def trainer_of(epochs: list[Any]) -> Any:
    def trainer(model: nn.Module, optimizer: Any, criterion: Any, epoch: Any) -> None:
        epochs.append(epoch)
        optimizer.zero_grad()
        criterion(model(tokens()), torch.tensor([0, 2])).backward()
        optimizer.step()

    return trainer


def test_heads_without_influence_on_the_loss_go_by_taylor() -> None:
    model = encoder(layers=1)
    with torch.no_grad():
        model.attention[0].dense.weight[:, 4:6] = 0  # the gradient of head 2 is zero
    epochs: list[Any] = []

    pruner = pruner_of(
        model, 0.25, ranking_criterion="taylorfo", trainer=trainer_of(epochs),
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-3), criterion=nn.CrossEntropyLoss(),
    )  # fmt: skip
    pruner.compress()

    assert epochs == [None]
    assert pruner.pruned_heads == {0: {2}}


def test_iterations_reach_the_ratio_once_and_train_in_between() -> None:
    model = encoder(layers=1, heads=12)
    epochs: list[Any] = []
    pruner = pruner_of(
        model, 0.25, num_iterations=4, epochs_per_iteration=2, trainer=trainer_of(epochs),
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-3), criterion=nn.CrossEntropyLoss(),
    )  # fmt: skip
    counts: list[int] = []
    update = pruner.update_masks

    def counted(masks: Any) -> None:
        update(masks)
        counts.append(len(pruner.pruned_heads[0]))

    pruner.update_masks = counted  # type: ignore[method-assign]
    pruner.compress()

    assert counts == [0, 1, 2, 3]  # trap: a head a round would make four
    assert epochs == [0, 1] * 3


def test_a_single_head_stays() -> None:
    model = encoder(layers=1, heads=1, head_dim=8)
    pruner = pruner_of(model, 0.9, width=8)

    pruner.compress()

    assert pruner.pruned_heads == {0: set()}


def test_at_least_one_of_several_heads_goes() -> None:
    pruner = pruner_of(encoder(layers=1), 0.1)

    pruner.compress()

    assert len(pruner.pruned_heads[0]) == 1


def test_projections_need_no_bias() -> None:
    pruner = pruner_of(encoder(bias=False))

    _, masks = pruner.compress()

    assert all(set(own) == {"weight"} for own in masks.values())


def test_an_evaluator_serves_for_all_callbacks() -> None:
    model = encoder()
    calls: list[Any] = []

    def train(one: nn.Module, optimizer: Any, step: Any, _schedulers: Any, *limits: Any) -> None:
        calls.append(limits)
        optimizer.zero_grad()
        step(tokens(), one).backward()
        optimizer.step()

    evaluator = TorchEvaluator(
        train, torch.optim.SGD(model.parameters(), lr=1e-3),
        lambda batch, one: one(batch).square().mean(), dummy_input=tokens(),
    )  # fmt: skip
    pruner = TransformerHeadPruner(
        model, entries(0.5), 2, ranking_criterion="taylorfo", num_iterations=2, evaluator=evaluator
    )

    pruner.compress(max_steps=3)

    assert calls == [(None, 1), (None, 1), (None, 1), (3, None)]
    assert all(len(heads) == 2 for heads in pruner.pruned_heads.values())


def test_limits_without_an_evaluator_are_refused_before_any_training() -> None:
    pruner = pruner_of(encoder())

    with pytest.raises(ValueError, match="max_steps and max_epochs need an evaluator"):
        pruner.compress(max_steps=1)
    assert pruner.pruned_heads == {0: set(), 1: set()}


def test_pruned_heads_are_removed_from_the_model() -> None:
    model = randomised(encoder())
    pruner = TransformerHeadPruner(model, entries(0.5), 2, dummy_input=tokens())
    _, masks = pruner.compress()
    pruner.unwrap_model()

    speedup = ModelSpeedup(model, tokens(), masks)
    speedup.speedup_model()

    assert speedup.report is not None
    assert speedup.report.error < 1e-4
    for attention in model.attention:
        assert attention.query.out_features == attention.dense.in_features == 4
        assert attention.heads == 2

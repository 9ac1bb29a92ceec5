from torch import nn

from nni.compression.speedup.ancestry import attention_layers, nearest_layers, nearest_readers
from nni.compression.speedup.recording import capture
from tests.unit.sdk.nni.compression.attention_model import encoder, names_of, tokens
from tests.unit.sdk.nni.compression.models import build


def test_the_nearest_layers_stop_the_search() -> None:
    model, image = build("residual")
    graph = capture(model, image)
    names = {name for name, one in model.named_modules() if isinstance(one, nn.Conv2d)}

    assert nearest_layers(graph, graph.outputs[0], names) == ["stem.0", "first.1", "second.1"]
    assert nearest_layers(graph, graph.outputs[0], {*names, "head"}) == ["head"]


def test_the_nearest_readers_are_those_without_a_layer_between() -> None:
    model, image = build("residual")
    graph = capture(model, image)
    names = {name for name, one in model.named_modules() if isinstance(one, nn.Conv2d)}

    assert nearest_readers(graph, graph.inputs[0], names) == ["stem.0"]
    stem = next(node for node in graph.nodes if node.module == "stem.0")
    assert nearest_readers(graph, stem.outputs[0], names) == ["first.0.0", "second.0.0"]


def test_every_attention_of_an_encoder_is_found() -> None:
    model = encoder()
    names = {name for name, one in model.named_modules() if isinstance(one, nn.Linear)}

    found = attention_layers(capture(model, tokens()), names)

    assert [list(one) for one in found] == names_of()


def test_attention_by_one_kernel_is_found_as_well() -> None:
    model, inputs = build("grouped-queries")
    names = {name for name, one in model.named_modules() if isinstance(one, nn.Linear)}

    found = attention_layers(capture(model, inputs), names)

    parts = ("query", "key", "value", "out")
    assert found == [tuple(f"attention.{part}" for part in parts)]


def test_fused_projections_are_no_attention_of_four_layers() -> None:
    model, inputs = build("attention")
    names = {name for name, one in model.named_modules() if isinstance(one, nn.Linear)}

    assert attention_layers(capture(model, inputs), names) == []

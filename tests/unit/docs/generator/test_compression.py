"""Every algorithm of compression has a page with arguments and an example that the tests run."""

import pytest

from docs.generator.compression import (
    Algorithm,
    compression_algorithms,
    compression_pages,
)
from docs.generator.docstrings import entries_of
from nni.compression import distillation, pruning, quantization

ALGORITHMS = compression_algorithms()
IDS = [one.name for one in ALGORITHMS]


@pytest.mark.parametrize("one", ALGORITHMS, ids=IDS)
def test_docstring_explains_every_argument(one: Algorithm) -> None:
    assert set(entries_of(one.sections["Args"])) == set(one.arguments)


@pytest.mark.parametrize("one", ALGORITHMS, ids=IDS)
def test_page_has_every_argument_and_the_example(one: Algorithm) -> None:
    text = compression_pages()[one.path]

    assert [name for name in one.arguments if f"\n| `{name}` |" not in text] == []
    assert one.sections["Examples"].startswith(">>> ")
    assert f"```pycon\n{one.sections['Examples']}\n```" in text
    assert one.name in one.sections["Examples"]


def test_index_links_every_exported_class_once() -> None:
    index = compression_pages()["compression/index.md"]

    exported = {
        getattr(module, name).__name__
        for module in (pruning, quantization, distillation)
        for name in module.__all__
        if name.endswith(("Pruner", "Quantizer", "Distiller")) and name != "Distiller"
    }
    assert exported == set(IDS)
    assert [name for name in IDS if index.count(f"({name.lower()}.md)") != 1] == []


def test_page_shows_what_the_class_supports() -> None:
    pages = compression_pages()

    level = pages["compression/levelpruner.md"]
    assert "| masks as one | single elements |" in level
    assert "| pruning_algorithm | level |" in level
    assert "| evaluator | optional |" in level
    assert "| evaluator | required |" in pages["compression/slimpruner.md"]
    assert "| modules | BatchNorm2d |" in pages["compression/slimpruner.md"]
    assert "| step of a compression job | no |" in pages["compression/amcpruner.md"]
    assert "| evaluator | not used |" in pages["compression/observerquantizer.md"]
    assert "| targets | weight |" in pages["compression/naivequantizer.md"]

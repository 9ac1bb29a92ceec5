"""Every algorithm has a page with arguments, capabilities, and an example that the tests run."""

import pytest
import yaml

from docs.generator.algorithms import (
    algorithm_pages,
    built_in_entries,
    docstring_section,
    path_of,
)
from nni.hpo.registry.entries import AlgorithmEntry

ENTRIES = built_in_entries()
IDS = [entry.name for entry in ENTRIES]


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_page_has_every_argument(entry: AlgorithmEntry) -> None:
    page = algorithm_pages()[path_of(entry)]

    assert [one.name for one in entry.arguments if f"\n| `{one.name}` |" not in page] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_declaration_says_when_to_use_the_algorithm(entry: AlgorithmEntry) -> None:
    assert entry.summary
    assert entry.use_when


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_class_has_an_example_in_its_docstring(entry: AlgorithmEntry) -> None:
    assert docstring_section(entry, "Examples").startswith(">>> ")


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_configuration_on_the_page_is_valid_yaml_with_the_name(entry: AlgorithmEntry) -> None:
    page = algorithm_pages()[path_of(entry)]

    text = page.partition("```yaml\n")[2].partition("```")[0]

    assert yaml.safe_load(text)[entry.kind]["name"] == entry.name


def test_index_links_every_page() -> None:
    index = algorithm_pages()["algorithms/index.md"]

    assert [entry.name for entry in ENTRIES if f"({entry.name.lower()}.md)" not in index] == []

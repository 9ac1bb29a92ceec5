"""Writer of the documentation's sources: `python -m docs.generator OUTPUT`.

`OUTPUT/docs` gets the pages of `docs/` and the generated ones, `OUTPUT/mkdocs.yml` the
configuration whose navigation names them all.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

from docs.generator.algorithms import algorithm_pages, built_in_entries, path_of
from docs.generator.command_line import command_line_page
from docs.generator.compression import compression_algorithms, compression_pages
from docs.generator.configuration import configuration_page
from docs.generator.grpc_api import grpc_page
from docs.generator.python_api import PUBLIC_MODULES, python_pages
from docs.generator.rest_api import rest_page

ROOT = Path(__file__).parents[2]


def main(output: Path) -> None:
    """Write all pages and the configuration below `output`, which is emptied first."""
    shutil.rmtree(output, ignore_errors=True)
    pages = output / "docs"
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("generator", "__pycache__"))
    shutil.copy(ROOT / "CONTRIBUTING.md", pages / "contributing.md")
    for name, text in generated_pages().items():
        path = pages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (output / "mkdocs.yml").write_text(_configuration(), "utf-8")


def generated_pages() -> dict[str, str]:
    """Return the text of every generated page, by its path below the folder of pages."""
    return {
        **algorithm_pages(),
        **compression_pages(),
        **python_pages(),
        "reference/nnictl.md": command_line_page(),
        "reference/configuration.md": configuration_page(),
        "reference/rest.md": rest_page(),
        "reference/grpc.md": grpc_page(),
    }


def _configuration() -> str:
    settings: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    paths = settings["plugins"][1]["mkdocstrings"]["handlers"]["python"]
    paths["paths"] = [str(ROOT / path) for path in paths["paths"]]
    algorithms = [{one.name: path_of(one)} for one in built_in_entries()]
    compression = [{one.name: one.path} for one in compression_algorithms()]
    for section in settings["nav"]:
        if "Compression algorithms" in section:
            section["Compression algorithms"] += compression
        if "Algorithms" in section:
            section["Algorithms"] += algorithms
        if "Reference" in section:
            section["Reference"].append(
                {"Python API": ["reference/python/index.md", *_python_pages()]}
            )
    return yaml.safe_dump(settings, sort_keys=False)


def _python_pages() -> list[dict[str, str]]:
    return [{name: f"reference/python/{name}.md"} for name in PUBLIC_MODULES]


if __name__ == "__main__":
    main(Path(sys.argv[1]))

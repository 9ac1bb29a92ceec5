"""The dashboard asks for figures that the services show."""

import json
import re
from pathlib import Path

from tests.support.deployment import DEPLOY, ROOT

NAME = re.compile(r"\b((?:nni|process)_[a-z_]+)")
DERIVED = re.compile(r"_(bucket|count|sum)\Z")


def shown() -> set[str]:
    """Give the names of all figures in the sources of the services."""
    found: set[str] = set()
    for path in ROOT.glob("services/*/svc_*/**/*.py"):
        found.update(re.findall(r'"((?:nni|process)_[a-z_]+)"', path.read_text()))
    return found


def test_every_panel_shows_figures_that_there_are() -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "nni.json").read_text())
    asked = {
        DERIVED.sub("", name)
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in NAME.findall(target["expr"])
    }

    assert len(dashboard["panels"]) > 10
    assert asked <= shown()


def test_every_figure_is_explained() -> None:
    text = Path(ROOT / "docs/observability.md").read_text()
    figures = {name for name in shown() if name.endswith(("_total", "_seconds", "_bytes"))}

    assert {name for name in figures if name not in text} == set()

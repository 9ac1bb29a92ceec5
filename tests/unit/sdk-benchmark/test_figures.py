"""Shared figures of the benchmark's plots."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")


def test_lines_are_saved_with_labels_of_axes_and_a_legend(tmp_path: Path) -> None:
    from nni_benchmark.figures import new_figure, save_lines

    figure, axes = new_figure("a problem", "trial", "regret")
    axes.plot([1, 2], [3.0, 4.0], label="TPE")
    save_lines(figure, axes, tmp_path / "lines.png")

    texts = (axes.get_title(), axes.get_xlabel(), axes.get_ylabel())
    assert texts == ("a problem", "trial", "regret")
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["TPE"]
    assert (tmp_path / "lines.png").read_bytes().startswith(b"\x89PNG")

"""Tables of trials: of pandas, and in HTML for notebooks."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from nni.hpo.json_value import JsonValue
from nni.hpo.search.outcomes import FrontPoint, StudyTrial

_SHOWN_ROWS: Final = 10
"""Rows of a table in a notebook."""
_SHOWN_CHARACTERS: Final = 60
"""Of one cell."""

Row = Mapping[str, JsonValue]
"""Cells of a trial by column; the first column is `id`."""


class ResultTable(ABC):
    """Base of studies: their trials as a pandas table, and as HTML for notebooks."""

    @property
    @abstractmethod
    def results(self) -> list[tuple[StudyTrial, JsonValue]]:
        """All trials with a result, and the result, in the order of `tell`."""

    @property
    @abstractmethod
    def pareto_front(self) -> list[FrontPoint]:
        """The feasible non-dominated trials, in the order of `tell`."""

    def to_dataframe(self) -> Any:  # noqa: ANN401 - of pandas, which need not be installed
        """Return the trials with a result as a table of pandas, in the order of `tell`.

        Returns:
            `DataFrame` with the columns `id`, `value` (of a dict `value.` and each metric), one per
            hyperparameter, whose names begin with `parameters.`, and one per `user_attrs.`.

        Raises:
            ImportError: pandas is not installed.
        """
        return data_frame(self._rows())

    def _rows(self) -> list[Row]:
        return [
            {
                "id": trial.id,
                **prefixed("value", value),
                **trial_columns(trial.parameters, trial.user_attrs),
            }
            for trial, value in self.results
        ]

    def _repr_html_(self) -> str:
        """Return an HTML table of the best and the latest trials, for notebooks."""
        return html_table(self._rows(), {point.trial.id for point in self.pareto_front})


def trial_columns(parameters: JsonValue, user_attrs: Mapping[str, JsonValue]) -> Row:
    """Return columns `parameters.<key>` and `user_attrs.<key>` of a trial."""
    named = parameters if isinstance(parameters, Mapping) else {"": parameters}
    return {**prefixed("parameters", named), **prefixed("user_attrs", user_attrs)}


def prefixed(prefix: str, value: JsonValue) -> Row:
    """Return a dict's items as columns `prefix.key`, another value as the column `prefix`."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    return {f"{prefix}.{key}": one for key, one in value.items()}


def data_frame(rows: Iterable[Row]) -> Any:  # noqa: ANN401 - of pandas
    """Return rows as a DataFrame of pandas; raise ImportError without pandas.

    Raises:
        ImportError: pandas is not installed.
    """
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError("to_dataframe needs pandas: pip install pandas") from error
    return pandas.DataFrame(list(rows))


def html_table(rows: Sequence[Row], best: Collection[object]) -> str:
    """Return an HTML table of the best trials, then the latest others, up to a number of rows.

    Args:
        rows: all trials.
        best: ids of the best ones, which are printed in bold.
    """
    chosen = [row for row in rows if row["id"] in best][:_SHOWN_ROWS]
    others = [row for row in reversed(rows) if row["id"] not in best]
    shown = chosen + others[: _SHOWN_ROWS - len(chosen)]
    columns = list(dict.fromkeys(name for row in shown for name in row))
    lines = [_line("th", columns)]
    for row in shown:
        tag = "b" if row["id"] in best else "span"
        lines.append(_line("td", [row.get(name, "") for name in columns], tag))
    left = len(rows) - len(shown)
    more = f", of which {len(shown)} are shown" if left else ""
    return f"<p>{len(rows)} trials{more}</p><table>{''.join(lines)}</table>"


def _line(cell: str, values: Iterable[JsonValue], tag: str = "span") -> str:
    cells = (f"<{cell}><{tag}>{_shown(value)}</{tag}></{cell}>" for value in values)
    return f"<tr>{''.join(cells)}</tr>"


def _shown(value: JsonValue) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return escape(text[:_SHOWN_CHARACTERS])

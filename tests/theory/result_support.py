"""Checks that every result must pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from evenly.frames import Table


def check_words(result: Any, words: list[str]) -> None:  # noqa: ANN401
    """Check the one-line summary with these words, and the HTML table."""
    line = repr(result)
    assert str(result) == line
    assert line.startswith(f"{type(result).__name__}(")
    assert len(line) < 200
    assert "\n" not in line
    for word in words:
        assert word in line, line
    page = result._repr_html_()
    assert page.startswith("<table>")
    assert page.endswith("</table>")
    assert "<script" not in page
    assert page.count("<tr>") == len(result._rows()) > 0


def check_value(make: Callable[[], Any], other: Any) -> None:  # noqa: ANN401
    """Check that a result is frozen, takes keywords only and compares by value."""
    one, same = make(), make()
    assert one is not same
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert len({one, same, other}) == 2
    with pytest.raises(FrozenInstanceError):
        setattr(one, fields(one)[0].name, None)
    with pytest.raises(TypeError):
        type(one)(*(getattr(one, each.name) for each in fields(one)))
    assert json.loads(json.dumps(one.to_dict(), allow_nan=False)) == one.to_dict()


def check_frames(result: Any, columns: list[str], rows: int) -> None:  # noqa: ANN401
    """Check the main table in pandas and in Polars."""
    table = {name: _listed(column) for name, column in result.columns().items()}
    assert list(table) == columns
    assert {len(column) for column in table.values()} == {rows}
    pandas, polars = result.to_pandas(), result.to_polars()
    assert list(pandas.columns) == polars.columns == columns
    assert len(pandas) == len(polars) == rows
    assert polars.to_dict(as_series=False) == table


def check_table(table: Table, columns: list[str], rows: int) -> None:
    """Check a secondary table."""
    assert list(table) == columns
    assert len(table) == rows
    assert list(table.to_pandas().columns) == table.to_polars().columns == columns


def check_plot(result: Any, folder: Path, *, panels: int | None) -> None:  # noqa: ANN401
    """Check that plots use the given axes or a new figure, and write nothing to the current folder."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    open_before = plt.get_fignums()
    figure = Figure()
    axes = figure.add_subplot()
    assert result.plot(ax=axes) is axes
    assert axes.get_title()
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert axes.has_data()
    assert plt.get_fignums() == open_before
    alone = result.plot()
    assert plt.get_fignums() != open_before
    assert alone.has_data()
    plt.close(alone.figure)
    if panels is not None:
        whole = Figure()
        assert result.plot_panels(figure=whole) is whole
        assert len(whole.axes) == panels
        assert plt.get_fignums() == open_before
        new = result.plot_panels()
        assert len(new.axes) == panels
        plt.close(new)
    assert plt.get_fignums() == open_before
    assert list(folder.iterdir()) == []


def _listed(column: Any) -> list[Any]:  # noqa: ANN401
    listed: list[Any] = column.tolist() if hasattr(column, "tolist") else list(column)
    return listed

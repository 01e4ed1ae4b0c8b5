"""Charts and tables as markup: small, and nothing in them but what is told."""

from __future__ import annotations

import pytest
from django.utils.html import format_html

from steady_queue_core.admin import charts_svg
from steady_queue_core.admin.charts_svg import Chart, Scale, Series, spark_svg
from steady_queue_core.admin.overview import _choices
from steady_queue_core.admin.table_html import Table, named
from steady_queue_core.overview.scope import WINDOWS


@pytest.mark.parametrize(
    ("heights", "path"),
    [
        ([], ""),
        ([9], "M0.5 9h0"),
        ([9, 9, 4, 7], "M0.5 9h0h1l1-5l1 3"),
        ([9, None, None, 7, 7], "M0.5 9h0M3.5 7h0h1"),
        ([None, 3, None], "M1.5 3h0"),
    ],
)
def test_a_line_has_gaps_where_nothing_is_known(heights: list[int | None], path: str) -> None:
    assert charts_svg.line_path(heights) == path


def test_bars_of_one_height_are_drawn_together() -> None:
    assert charts_svg.area_path([5, 5, 2], 9) == "M0 9V5h2V2h1V9z"


def bars(*values: tuple[int, int]) -> Chart:
    finished, failed = zip(*values, strict=True)
    return Chart(
        "ended", "Ended", range(3), ["a", "b", "<c>"].__getitem__,
        [Series("finished", "finished", finished), Series("failed", "failed", failed)],
        [str] * 2, [Scale.of_numbers(map(sum, values))],
        [*zip(["a", "b", "<c>"], values, strict=True)], stacked=True,
    )  # fmt: skip


def test_what_lies_on_top_is_drawn_behind() -> None:
    svg = bars((1000, 1), (0, 0), (0, 500)).svg
    behind, before = svg.index('class="failed"'), svg.index('class="finished"')
    assert behind < before
    # One failure in a thousand is one high. The others reach from the top to the bottom.
    assert 'class="failed" d="M0 136V72h1V136h1V104h1V136z"' in svg
    assert 'class="finished" d="M0 136V73h1V136h2V136z"' in svg
    assert "<c>" not in svg


def test_a_table_tells_the_times_with_something_to_tell_the_latest_first() -> None:
    table = bars((3, 1), (0, 0), (0, 5)).table
    assert table.rows == [("<c>", "0", "5"), ("a", "3", "1")]
    assert table.html.endswith(
        "<thead><tr><th>Time<th>finished<th>failed"
        "<tbody><tr><th>&lt;c&gt;<td>0<td>5<tr><th>a<td>3<td>1</table></div>"
    )


def test_safe_cells_are_shown_as_they_are() -> None:
    link = format_html('<a href="{}">x</a>', "/?a=1&b=2")
    assert '<td><a href="/?a=1&amp;b=2">x</a>' in Table("t", ["A", "B"], [["<b>", link]]).html


def test_names_have_a_title_where_they_may_be_cut() -> None:
    assert named("mail") == "mail"
    for name in ("m" * 23, "手" * 15):
        assert named(name) == f'<span title="{name}">{name}</span>'


def test_the_words_of_an_option_are_its_value_unless_a_browser_changes_them() -> None:
    shown = _choices(["a b", "a  b", " a", "\x1b", "<a>"], "a b")
    assert "<option selected>a b" in shown
    assert "<option>&lt;a&gt;" in shown
    for value in ("a  b", " a", "\x1b"):
        assert f'<option value="{value}">' in shown


def test_small_lines_are_told_to_screen_readers() -> None:
    svg = spark_svg([0, 4, 2], '6 ended in "a"')
    assert 'role="img"' in svg
    assert "<title>6 ended in &quot;a&quot;</title>" in svg
    assert 'd="M0.5 15h0l1-14l1 7"' in svg


def test_no_table_of_a_chart_is_long() -> None:
    for window in WINDOWS.values():
        assert window.length / window.row <= 30
        assert window.row % window.step == 0

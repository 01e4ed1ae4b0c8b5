"""The guard of the benchmarks notices what has become dearer, and takes every figure."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.databases.servers import open_server
from benchmarks.guard import __main__ as guard
from benchmarks.guard import costs, store
from benchmarks.guard.comparison import COUNTS, FIGURES, Figure, compare, passes, text
from benchmarks.options import Options
from benchmarks.sandbox import Figures
from tests.servers.kinds import KINDS

EACH = [(database, figure) for database, figures in FIGURES.items() for figure in figures]

each_figure = pytest.mark.parametrize(
    ("database", "figure"), EACH, ids=[f"{database}-{figure.key}" for database, figure in EACH]
)


def stored(database: str) -> Figures:
    return {figure.key: 2.0 for figure in FIGURES[database]}


@pytest.mark.parametrize("database", FIGURES)
def test_equal_and_smaller_figures_pass(database: str) -> None:
    before = stored(database)
    assert passes(compare(FIGURES[database], before, before))
    assert passes(
        compare(FIGURES[database], before, {key: value / 2 for key, value in before.items()})
    )


@each_figure
def test_one_worse_figure_fails(database: str, figure: Figure) -> None:
    before = stored(database)
    most = 1.1 * before[figure.key] + figure.slack
    assert passes(compare(FIGURES[database], before, before | {figure.key: most - 0.001}))
    findings = compare(FIGURES[database], before, before | {figure.key: most + 0.001})
    assert [each.figure for each in findings if each.verdict == "WORSE"] == [figure]
    assert not passes(findings)


@each_figure
def test_a_figure_that_is_missing_fails(database: str, figure: Figure) -> None:
    complete = stored(database)
    lacking = {key: value for key, value in complete.items() if key != figure.key}
    assert not passes(compare(FIGURES[database], complete, lacking))
    assert not passes(compare(FIGURES[database], lacking, complete))


def test_the_table_shows_what_was_stored_what_may_be_and_what_is() -> None:
    now = stored("sqlite") | {"drain_cpu": 2.5}
    table = text("sqlite", compare(FIGURES["sqlite"], stored("sqlite"), now)).splitlines()
    assert table[3].split() == [
        "CPU",
        "of",
        "workers,",
        "x",
        "floor",
        "2.000",
        "2.200",
        "2.500",
        "WORSE",
    ]


def test_what_is_stored_is_complete_and_one_more_statement_for_each_job_is_noticed() -> None:
    figures = json.loads(store.FILE.read_text())["figures"]
    assert {database: set(found) for database, found in figures.items()} == {
        database: {figure.key for figure in each} for database, each in FIGURES.items()
    }
    for database, figure in EACH:
        before = figures[database]
        assert passes(compare(FIGURES[database], before, before))
        if not figure.key.endswith("_cpu"):
            now = {**before, figure.key: before[figure.key] + 1}
            assert not passes(compare(FIGURES[database], before, now)), (database, figure.key)


def test_figures_of_another_interpreter_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "FILE", tmp_path / "stored.json")
    store.write({"sqlite": {"drain_cpu": 2.00004}})
    assert store.read() == {"sqlite": {"drain_cpu": 2.0}}
    monkeypatch.setattr(store, "PYTHON", "3.99")
    with pytest.raises(RuntimeError, match=r"and this is 3\.99"):
        store.read()


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Figures]:
    """What the command finds instead of measuring; it is stored, too."""
    figures = {database: stored(database) for database in FIGURES}

    def take(options: Options, enough: Callable[[Figures], bool]) -> Figures:
        return figures[options.database]

    def take_counts(options: Options, enough: Callable[[Figures], bool]) -> Figures:
        counts = {figure.key for figure in COUNTS[options.database]}
        return {key: value for key, value in take(options, enough).items() if key in counts}

    monkeypatch.setattr(guard, "take", take)
    monkeypatch.setattr(guard, "take_counts", take_counts)
    monkeypatch.setattr(guard.machine, "keep_to_cores", lambda count: count)
    monkeypatch.setattr(store, "FILE", tmp_path / "stored.json")
    assert guard.main(["--write"]) == 0
    return figures


def test_the_command_fails_for_one_worse_figure(
    taken: dict[str, Figures], capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard.main([]) == 0
    taken["sqlite"] = taken["sqlite"] | {"commits_run": 3.0}
    assert guard.main([]) == 1
    assert capsys.readouterr().out.count("WORSE") == 1


def test_a_machine_may_leave_out_how_long_a_job_takes(
    taken: dict[str, Figures], capsys: pytest.CaptureFixture[str]
) -> None:
    taken["sqlite"] = taken["sqlite"] | {"drain_cpu": 3.0}
    assert guard.main([]) == 1
    capsys.readouterr()
    assert guard.main(["--counts"]) == 0
    assert "CPU" not in capsys.readouterr().out
    taken["sqlite"] = taken["sqlite"] | {"commits_run": 3.0}
    assert guard.main(["--counts"]) == 1


needs_harness = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="the harness needs Python 3.12"
)


@needs_harness
@pytest.mark.slow
@pytest.mark.thorough  # The guard itself runs at the end of each CI.
@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgres", marks=pytest.mark.server("postgres"))]
)
def test_every_figure_is_taken(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the packages of this environment, and a server of the guard's own, which counts."""
    monkeypatch.setattr(environments, "prepare", lambda requirements, python: sys.executable)
    monkeypatch.setattr(costs, "TURNS", 2)
    if database in KINDS:
        monkeypatch.delenv(KINDS[database].variable, raising=False)
    with tempfile.TemporaryDirectory() as directory:  # One that the server's account may enter.
        options = Options(
            directory=Path(directory), python=sys.executable, database=database, jobs=600,
            durable=False,
        )  # fmt: skip
        counts = costs.take_counts(options, lambda _: True)
        shutil.rmtree(Path(directory, database))
        with (
            open_server(options, sqlite3.sqlite_version) as server,
            costs.Costs(options, server) as taking,
        ):
            taking.measure(counting=True)
            figures = taking.figures()
    assert set(counts) == {figure.key for figure in COUNTS[database]}
    assert set(figures) == {figure.key for figure in FIGURES[database]}
    assert all(value > 0 for value in figures.values())
    assert figures["commits_enqueue"] >= 1

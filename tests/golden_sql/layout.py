"""Lays out what was sent as a file for readers, the same in every run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlparse

from .pretty import pretty
from .recorder import Sent

#: Ids of each kind begin here: no other number of the scenarios is as large.
FIRST_JOB, FIRST_PROCESS, FIRST_BATCH = 7_000_000, 8_000_000, 6_000_000
FIRST_MEMBER, FIRST_DEPENDENCY = 9_000_000, 5_000_000
#: Statements of so many lines are shown once in a file.
LONG = 6
POSITIONAL = re.compile(r"%s|\?")
TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|\+00|Z)?")
JOB, PROCESS = re.compile(r"\b70\d{5}\b"), re.compile(r"\b80\d{5}\b")
BATCH, MEMBER = re.compile(r"\b60\d{5}\b"), re.compile(r"\b90\d{5}\b")
DEPENDENCY = re.compile(r"\b50\d{5}\b")
# The factor that makes a random half of one is the same in every run.
TOKEN = re.compile(r"\b(?!4294967296\b)\d{10,}\b")


# Names of savepoints have the id of the thread.
SAVEPOINT = re.compile(r"\bs\d+_x\d+\b")
#: Left out: only one of the drivers of MySQL needs it.
ISOLATION = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


def page(scenarios: Mapping[str, Iterable[Sent]]) -> str:
    """Return the text of a file: what each scenario sent, under its title."""
    shown: dict[str, str] = {}
    return "\n".join(_section(title, sent, shown) for title, sent in scenarios.items())


def _section(title: str, sent: Iterable[Sent], shown: dict[str, str]) -> str:
    texts = [_with_values(each) for each in sent if each.sql != ISOLATION]
    names = _names("\n".join(comments + sql for comments, sql in texts))
    blocks = [
        _normal(comments, names) * (number == 0) + pretty(statement.rstrip("; \n")) + ";"
        for comments, sql in texts
        for number, statement in enumerate(sqlparse.split(_normal(sql, names)))
    ]
    shortened = [_unless_shown(block, title, shown) for block in blocks]
    return f"-- {'-' * 8} {title}\n\n" + "\n\n".join(shortened) + "\n"


def _unless_shown(block: str, title: str, shown: dict[str, str]) -> str:
    """Refer to the statements that the file shows already, if they are long."""
    lines = block.splitlines()
    comments = [line for line in lines if line.startswith("-- ")]
    statement = "\n".join(lines[len(comments) :])
    known = shown.setdefault(statement, title)
    if known == title or len(lines) - len(comments) < LONG:
        return block
    return "\n".join([*comments, f'-- {lines[len(comments)]} ... as under "{known}"'])


def _with_values(sent: Sent) -> tuple[str, str]:
    """Return the named values of a statement, as comments, and its text with the other values."""
    named = sent.values if isinstance(sent.values, Mapping) else {}
    positional = iter(() if isinstance(sent.values, Mapping) else sent.values or ())
    sql = POSITIONAL.sub(lambda found: _literal(next(positional, found[0])), sent.sql)
    comments = [f"-- %({name})s = {_literal(value)}\n" for name, value in named.items()
                if f"%({name})s" in sql]  # fmt: skip
    return "".join(comments), sql.replace("%%", "%")


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return "':time'"
    if isinstance(value, list | tuple):
        return f"ARRAY[{', '.join(map(_literal, value))}]"
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def _names(text: str) -> dict[str, str]:
    """Return names for the ids of jobs and members, in their order."""
    names: dict[str, str] = {}
    for kind, ids in (("job", JOB), ("member", MEMBER)):
        found = sorted(set(ids.findall(text)))
        names |= {each: f":{kind}_{number}" for number, each in enumerate(found, 1)}
    return names


def _normal(text: str, names: Mapping[str, str]) -> str:
    """Replace what differs from run to run."""
    text = SAVEPOINT.sub("savepoint", TOKEN.sub(":token", TIME.sub(":time", text)))
    for ids in (JOB, MEMBER):
        text = ids.sub(lambda found: names[found[0]], text)
    for name, ids in ((":batch", BATCH), (":process", PROCESS), (":dependency", DEPENDENCY)):
        text = ids.sub(name, text)
    return text

"""A script is split where SQLite ends a statement: not inside strings, comments or triggers."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist_ops.migrations import find_directory
from mempersist_ops.sql_text import normalise, split_statements

TRIGGER = """CREATE TRIGGER g AFTER INSERT ON t BEGIN
  UPDATE t SET a = CASE WHEN a = ';' THEN 'END;' ELSE "b;" END; -- a comment; END;
  DELETE FROM t WHERE a = 'END';
END"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", ()),
        ("  \n-- only; a comment\n/* and; another */", ()),
        (";;", ()),
        ("SELECT 1;", ("SELECT 1",)),
        ("SELECT 1 ;\nSELECT 2;", ("SELECT 1", "SELECT 2")),
        ("-- first; second\nSELECT 1; -- third;\n", ("SELECT 1",)),
        ("SELECT 'a;b', \"c;d\", `e;f`, [g;h];", ("SELECT 'a;b', \"c;d\", `e;f`, [g;h]",)),
        ("SELECT 'it''s; fine';", ("SELECT 'it''s; fine'",)),
        ("SELECT 1 /* not; here */ + 1;", ("SELECT 1 /* not; here */ + 1",)),
        (f"{TRIGGER};\nSELECT 1;", (TRIGGER, "SELECT 1")),
        ("CREATE TABLE begin_end (a);SELECT 1;", ("CREATE TABLE begin_end (a)", "SELECT 1")),
    ],
)
def test_where_statements_end(script: str, expected: tuple[str, ...]) -> None:
    assert split_statements(script) == expected


@pytest.mark.parametrize("script", ["SELECT 1;\n\nSELECT 2", f"SELECT 1;\n\n{TRIGGER}", "SELECT 1;\n\n'open; string;"])
def test_an_unfinished_statement_is_named_by_its_line(script: str) -> None:
    with pytest.raises(ValueError, match="the statement at line 3 does not end with a semicolon"):
        split_statements(script)


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        split_statements("SELECT 1;\0")


text = st.text(alphabet="a;'\"-/*\n \u00e9", max_size=12)
pieces = st.one_of(
    text.map(lambda value: "'" + value.replace("'", "''") + "'"),
    text.map(lambda value: '"' + value.replace('"', '""') + '"'),
    text.map(lambda value: "/*" + value.replace("*/", "").rstrip("*") + "*/"),
    text.map(lambda value: "--" + value.replace("\n", "") + "\n"),
)
statements = st.lists(pieces, max_size=5).map(lambda parts: f"SELECT 1{''.join(parts)}+1")


@given(st.lists(st.one_of(statements, st.just(TRIGGER)), max_size=6))
def test_statements_joined_are_split_again(given_statements: list[str]) -> None:
    script = ";".join([*given_statements, ""])
    assert split_statements(script) == tuple(given_statements)


def test_the_service_s_own_migrations_make_what_sqlite_makes_of_the_whole_file() -> None:
    for path in sorted(find_directory().glob("*.sql")):
        script = path.read_text()
        with closing(sqlite3.connect(":memory:")) as whole, closing(sqlite3.connect(":memory:")) as split:
            whole.executescript(script)
            for statement in split_statements(script):
                split.execute(statement)
            listing = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
            assert whole.execute(listing).fetchall() == split.execute(listing).fetchall()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT  1\n+2", "SELECT 1 + 2 -- three"),
        ("CREATE TABLE t(a,b)", "CREATE TABLE t (\n  a, /* first */\n  b\n)"),
        ("SELECT a->>0", "SELECT a ->> 0"),
    ],
)
def test_layout_and_comments_do_not_count(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 'a  b'", "SELECT 'a b'"),
        ("SELECT 'a -- b'", "SELECT 'a '"),
        ('SELECT "a  b"', 'SELECT "a b"'),
        ("SELECT 1, 2", "SELECT 12"),
        ("SELECT ab", "SELECT a b"),
        ("SELECT 1.5e+3", "SELECT 1.5e + 3"),
    ],
)
def test_everything_else_counts(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)

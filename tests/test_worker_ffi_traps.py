"""Values that cross into JavaScript and back: each trap that Python Workers are known for, against the real stores."""

from __future__ import annotations

import base64
import math
import pickle
from typing import Any

import pytest

from mempersist.ports import CatalogError, Mail, MailUnavailable, Statement
from tests.rigs.worker.ports import RigCatalog, RigMailer, RigObjectStore, new_catalog, new_objects
from tests.rigs.worker.process import Rig, bundled, running, start

pytestmark = pytest.mark.worker


@pytest.fixture
def catalog() -> RigCatalog:
    return new_catalog(running())


@pytest.fixture
def objects() -> RigObjectStore:
    return new_objects(running())


def inside(rig: Rig, source: str, data: Any = None) -> Any:
    """What ``main(data)`` of some Python source returns inside Pyodide."""
    text = base64.b64encode(pickle.dumps(data)).decode()
    return pickle.loads(base64.b64decode(rig.steer("run", source=source, data=text)["result"]))


class TestNothing:
    async def test_none_is_null_in_the_database_and_comes_back_as_none(self, catalog: RigCatalog) -> None:
        (row,) = await catalog.query("SELECT ? AS n, ? IS NULL AS is_null, typeof(?) AS type", (None, None, None))
        assert row == {"n": None, "is_null": 1, "type": "null"}

    async def test_an_object_that_is_not_there_is_none(self, objects: RigObjectStore) -> None:
        assert await objects.head("missing") is None

    async def test_an_absent_option_is_left_out_and_not_sent_as_null(self, objects: RigObjectStore) -> None:
        await objects.put("k", b"0123")
        assert await objects.get("k", offset=0, length=None) == b"0123"
        assert (await objects.list("")).cursor is None

    def test_null_of_javascript_is_not_none(self) -> None:
        source = """
from bindings.ffi import is_nothing
from js import JSON
from pyodide.ffi import jsnull
async def main(_):
    return JSON.parse("null") is None, is_nothing(JSON.parse("null")), is_nothing(None), is_nothing(jsnull)
"""
        assert inside(running(), source) == (False, True, True, True)


class TestNumbers:
    @pytest.mark.parametrize("number", [0, 1, -1, 2**31, 2**53 - 1, -(2**53) + 1])
    async def test_whole_numbers_up_to_what_javascript_holds(self, catalog: RigCatalog, number: int) -> None:
        await catalog.batch(
            [Statement("CREATE TABLE t (i INTEGER) STRICT"), Statement("INSERT INTO t VALUES (?)", (number,))]
        )
        assert await catalog.query("SELECT i, typeof(i) AS type FROM t") == ({"i": number, "type": "integer"},)

    async def test_a_larger_one_would_become_a_bigint_and_is_refused(self, catalog: RigCatalog) -> None:
        with pytest.raises(CatalogError, match="bind it as text"):
            await catalog.query("SELECT ?", (2**53,))

    async def test_a_real_without_a_fraction_comes_back_as_a_whole_number(self, catalog: RigCatalog) -> None:
        (row,) = await catalog.query("SELECT CAST(1 AS REAL) AS r, typeof(CAST(1 AS REAL)) AS type, 0.5 AS half")
        assert row == {"r": 1, "type": "real", "half": 0.5}

    async def test_no_number_would_silently_be_null_and_is_refused(self, catalog: RigCatalog) -> None:
        with pytest.raises(CatalogError, match="NaN"):
            await catalog.query("SELECT ?", (math.nan,))


class TestTexts:
    @pytest.mark.parametrize("text", ["", "a\0b", "é\u0301", "😀" * 3, "\u2028", '"\\', "日本語"])
    async def test_any_text_comes_back_as_it_went(
        self, catalog: RigCatalog, objects: RigObjectStore, text: str
    ) -> None:
        assert await catalog.query("SELECT ? AS x", (text,)) == ({"x": text},)
        await objects.put(f"key {text}".replace("\0", ""), text.encode())
        assert await objects.get(f"key {text}".replace("\0", "")) == text.encode()

    async def test_half_a_character_would_be_replaced_and_is_refused(self, catalog: RigCatalog) -> None:
        with pytest.raises(CatalogError, match="lone surrogate"):
            await catalog.query("SELECT ?", ("\ud83d",))


class TestBytes:
    async def test_blobs_come_back_as_bytes_though_javascript_has_lists(self, catalog: RigCatalog) -> None:
        data = bytes(range(256)) * 40
        (row,) = await catalog.query("SELECT ? AS b, typeof(?) AS type, length(?) AS n", (data, data, data))
        assert row == {"b": data, "type": "blob", "n": len(data)}

    @pytest.mark.parametrize("value", [[1, 2], (1, 2), {"a": 1}, bytearray(b"x")])
    async def test_a_value_that_would_be_stored_as_something_else_is_refused(
        self, catalog: RigCatalog, value: Any
    ) -> None:
        with pytest.raises(CatalogError, match="cannot be bound"):
            await catalog.query("SELECT ?", (value,))

    async def test_an_object_of_a_mebibyte_crosses_as_bytes_and_fast(self, objects: RigObjectStore) -> None:
        data = bytes(range(256)) * 4096
        await objects.put("k", data)
        found = await objects.get("k")
        assert type(found) is bytes
        assert found == data


class TestRows:
    async def test_columns_named_like_methods_of_a_dict(self, catalog: RigCatalog) -> None:
        (row,) = await catalog.query('SELECT 1 AS "values", 2 AS "get", 3 AS items, 4 AS keys, 5 AS "constructor"')
        assert row == {"values": 1, "get": 2, "items": 3, "keys": 4, "constructor": 5}
        assert type(row) is dict

    async def test_a_thousand_rows_come_whole(self, catalog: RigCatalog) -> None:
        rows = await catalog.query(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
            " SELECT i, i || 'x' AS t FROM n"
        )
        assert [(row["i"], row["t"]) for row in rows] == [(i, f"{i}x") for i in range(1, 1001)]


class TestBindingsThatTheSdkDoesNotWrap:
    async def test_mail_is_a_plain_object_for_the_binding(self) -> None:
        rig = running()
        rig.steer("world")
        await RigMailer(rig, "memory@example.com").send(Mail("me@example.com", "Hello", "text", "<p>text</p>"))
        assert rig.steer("mail") == [
            {
                "from": "memory@example.com",
                "to": "me@example.com",
                "subject": "Hello",
                "text": "text",
                "html": "<p>text</p>",
            }
        ]

    async def test_mail_that_is_not_taken_says_so(self) -> None:
        rig = running()
        rig.steer("world")
        rig.steer("fault", binding="EMAIL", at=0, when="before")
        with pytest.raises(MailUnavailable):
            await RigMailer(rig, "memory@example.com").send(Mail("me@example.com", "Hello", "text"))
        rig.steer("fault")

    def test_a_missing_binding_is_named(self) -> None:
        source = """
from types import SimpleNamespace
from bindings.host import ports_of, settings_of
async def main(_):
    said = []
    for call in (ports_of, settings_of):
        try:
            call(SimpleNamespace())
        except AttributeError as error:
            said.append(str(error))
    return said
"""
        assert [text.split(";")[0] for text in inside(running(), source)] == [
            "the Worker has no binding AI",
            "the Worker has no variable PUBLIC_URL",
        ]


class TestTheStart:
    """What a snapshot would refuse fails here as well, and the app itself passes."""

    @pytest.mark.parametrize(
        "line",
        [
            "import os; os.urandom(4)",
            "import random; random.random()",
            "import secrets; secrets.token_hex()",
            "import uuid; uuid.uuid4()",
            "import random; random.Random()",
            "from js import fetch; fetch('https://example.com')",
            "from js import setTimeout; setTimeout(lambda: 0, 1)",
        ],
    )
    def test_randomness_and_io_at_import_are_refused(self, line: str) -> None:
        refused = running().steer("probe", line=line)
        assert "refused" in refused["error"]

    def test_the_app_is_imported_under_these_rules(self) -> None:
        rig = start(bundled(), worlds=1)
        try:
            assert rig.request("GET", "/healthz")[0] == 200
        finally:
            rig.stop()

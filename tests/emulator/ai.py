"""Workers AI: the one model that the service uses, answered with hashed words instead of meaning."""

from __future__ import annotations

from collections.abc import Sequence

from mempersist_ops.stores.memory.embedder import HashEmbedder
from tests.emulator.routing import Call, Route
from tests.emulator.wire import ApiError, Result

MODEL = "@cf/baai/bge-m3"
_DIMENSIONS = 1024
_MAX_TEXTS = 100


class WorkersAi:
    """``run`` of BGE-M3. ``texts`` counts what was embedded."""

    def __init__(self) -> None:
        self._embedder = HashEmbedder(_DIMENSIONS)
        self.texts = 0

    def routes(self) -> list[Route]:
        paths = ("/ai/run/{by}/{owner}/{name}", "/ai/run/{name}")  # the official client escapes the slashes
        return [Route("POST", path, "Workers AI", "Read", self._run) for path in paths]

    async def _run(self, call: Call, **names: str) -> Result:
        model = "/".join(names.values())
        if model != MODEL:
            raise ApiError(400, 5007, f"No such model {model} or task")
        texts = call.request.json_object(5006).get("text")
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise ApiError(400, 5006, "Error: text must be a string or a list of strings that are not empty")
        if not 1 <= len(texts) <= _MAX_TEXTS:
            raise ApiError(400, 5006, f"Error: text must have 1 to {_MAX_TEXTS} items")
        return Result(await self._embed(texts))

    async def _embed(self, texts: Sequence[str]) -> dict[str, object]:
        self.texts += len(texts)
        rows = await self._embedder.embed(texts, kind="passage")
        return {"shape": [len(texts), _DIMENSIONS], "data": [list(row) for row in rows], "pooling": "cls"}

"""Workers AI as the embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pyodide.ffi import JsException

from bindings.ffi import to_json_value
from mempersist.ports import EmbeddingModel, IndexUnavailable, Vector
from mempersist.rules.embedding import BGE_M3, MODEL, embed


class WorkersAiEmbedder:
    """:class:`mempersist.ports.Embedder` over the AI binding, with BGE-M3: multilingual, 1024 numbers a text."""

    def __init__(self, ai: Any) -> None:
        self._ai = ai

    @property
    def model(self) -> EmbeddingModel:
        return BGE_M3

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[Vector]:
        del kind  # the model embeds both alike
        return await embed(texts, self._run)

    async def _run(self, inputs: dict[str, Any]) -> Any:
        try:
            answer = await self._ai.run(MODEL, to_json_value(inputs))
            return answer.data.to_py()
        except JsException:
            raise IndexUnavailable("Workers AI did not answer") from None
        except AttributeError:
            raise IndexUnavailable("Workers AI answered with something that is no list of vectors") from None

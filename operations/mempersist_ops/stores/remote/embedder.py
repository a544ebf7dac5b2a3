"""Workers AI as the embedder, over the REST API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from mempersist.ports import EmbeddingModel, IndexUnavailable, Vector
from mempersist.rules.embedding import BGE_M3, MODEL, embed
from mempersist_ops.stores.remote.rest import RestClient, RestError


class WorkersAiRestEmbedder:
    """:class:`mempersist.ports.Embedder` over the REST API: the vectors that the Worker's own embedder gives."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    @property
    def model(self) -> EmbeddingModel:
        return BGE_M3

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[Vector]:
        del kind  # the model embeds both alike
        return await embed(texts, self._run)

    async def _run(self, inputs: dict[str, Any]) -> Any:
        try:
            answer = await self._client.call("POST", f"/ai/run/{MODEL}", body=inputs, repeatable=True)
        except RestError as error:
            raise IndexUnavailable(str(error)) from None
        return answer.get("data") if isinstance(answer, dict) else None

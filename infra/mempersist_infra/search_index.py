"""The vector indexes: one a generation, each with its metadata indexes before the first vector."""

from __future__ import annotations

from typing import Final

import pulumi

from mempersist.limits import VECTOR_METADATA_INDEXES
from mempersist.rules.embedding import BGE_M3
from mempersist_infra.context import Component, Context
from mempersist_infra.providers.vectorize import VectorizeIndex, VectorizeMetadataIndex

METRIC: Final = "cosine"


class SearchIndex(Component):
    """Two generations exist side by side while one takes the other's place."""

    ready: tuple[pulumi.Resource, ...]
    """What has to be there before the first vector."""

    def __init__(self, context: Context, owner: str) -> None:
        super().__init__("SearchIndex", context)
        context = context.within(self)
        ready: list[pulumi.Resource] = []
        for generation in context.settings.generations:
            name = context.names.index(generation)
            index = VectorizeIndex(
                f"vectors-{generation}",
                account=context.account,
                index=name,
                dimensions=BGE_M3.dimensions,
                metric=METRIC,
                owner=owner,
                opts=context.options(),
            )
            # One after the other: each is a mutation of the same index.
            last: pulumi.Resource = index
            for key in VECTOR_METADATA_INDEXES:
                last = VectorizeMetadataIndex(
                    f"vectors-{generation}-{key}",
                    account=context.account,
                    index=name,
                    property_name=key,
                    value_type="string",
                    opts=context.options(after=(last,)),
                )
            ready.append(last)
        self.ready = tuple(ready)

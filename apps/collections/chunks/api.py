"""REST of chunks: the chunk reader in all its ways, links, figures, and changes by hand."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.chunks import history, services
from apps.collections.chunks import links as chunk_links
from apps.collections.chunks import selectors as chunk_reader
from apps.collections.chunks.selectors import ChunkFilter, ReaderCursor, ReaderStep
from apps.collections.chunks.shapes import (
    ChainStepOutput,
    ChunkDetailOutput,
    ChunkInput,
    ChunkOutput,
    CodeEdgesOutput,
    LinkOutput,
    NeighboursOutput,
    ReaderOutput,
    RevisionOutput,
    StatisticsOutput,
)
from apps.collections.chunks.statistics import chunk_statistics
from apps.collections.display import selectors
from apps.collections.display.request_values import choice, flag, number, text
from apps.collections.graph.selectors import edges_of_chunk
from apps.collections.models import Chunk, ChunkKind, LinkOrigin
from web.drf.inputs import valid
from web.drf.pages import Pagination, WholeList
from web.drf.views import TenantAPIView

STEPS = ("current", "next", "previous", "jump", "reset")
MAX_NEIGHBOURS = 20

FILTERS = [
    OpenApiParameter("document_id", int, description="Only from this document."),
    OpenApiParameter("path", str, description="Only from the source file at this path."),
    OpenApiParameter("path_prefix", str, description="Only from files below this folder."),
    OpenApiParameter("kind", str, enum=ChunkKind.values, many=True),
    OpenApiParameter("header", str, description="Under a heading with this title."),
    OpenApiParameter("header_match", str, enum=["exact", "contains"]),
    OpenApiParameter("text", str, description="Containing this text, ignoring case."),
    OpenApiParameter("page", int),
    OpenApiParameter("qualified_name", str, description="Code whose full name begins with this."),
    OpenApiParameter("relation", str, description="With a link of this relation; `any` for any relation."),
    OpenApiParameter("has_points", bool),
    OpenApiParameter("points_by", str, enum=LinkOrigin.values),
    OpenApiParameter("is_disabled", bool),
    OpenApiParameter("is_edited", bool),
]


class ReadingOrder(Pagination):
    """Keyset pages in the order in which chunks were made, which within a document is that of reading."""

    ordering = "pk"


def filter_of(request: Request, document_id: int | None = None) -> ChunkFilter:
    """Return the filter that an address names. Raises ValidationError."""
    return ChunkFilter(
        document_id=document_id or number(request, "document_id"),
        path=text(request, "path"),
        path_prefix=text(request, "path_prefix"),
        kinds=tuple(request.query_params.getlist("kind")),
        header=text(request, "header"),
        header_match=choice(request, "header_match", ("exact", "contains"), "exact"),  # type: ignore[arg-type]
        text=text(request, "text"),
        page=number(request, "page", high=2**31 - 1),
        qualified_name=text(request, "qualified_name"),
        relation=text(request, "relation"),
        has_points=flag(request, "has_points"),
        points_by=choice(request, "points_by", LinkOrigin.values),
        is_disabled=flag(request, "is_disabled"),
        is_edited=flag(request, "is_edited"),
    )


class ChunksView(TenantAPIView):
    """The chunks of a collection."""

    actions = {"GET": "collection.read"}
    may_lag = frozenset({"GET"})
    pagination_class = ReadingOrder

    @extend_schema(
        operation_id="chunks_list", tags=["chunks"], parameters=FILTERS, responses=ChunkOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the chunks of a collection's live documents that match all filters, with key points."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        rows = chunk_reader.chunk_rows(actor=self.actor, collection=collection, where=filter_of(request))
        return self.paginated(rows, ChunkOutput)


class DocumentChunksView(TenantAPIView):
    """The chunks of a document."""

    actions = {"GET": "collection.read"}
    may_lag = frozenset({"GET"})
    pagination_class = ReadingOrder

    @extend_schema(
        operation_id="document_chunks_list",
        tags=["chunks"],
        parameters=FILTERS[1:],
        responses=ChunkOutput(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the chunks of a document, an earlier version too, in reading order."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        rows = chunk_reader.chunk_rows(
            actor=self.actor, collection=document.collection, where=filter_of(request, document.pk)
        )
        return self.paginated(rows, ChunkOutput)


class ReaderView(TenantAPIView):
    """One step of a reader."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="chunks_read",
        tags=["chunks"],
        parameters=[
            OpenApiParameter("step", str, enum=STEPS, description="Default: `next`."),
            OpenApiParameter("cursor", str, description="From the previous step; it contains the filters."),
            OpenApiParameter(
                "place", int, description="For `jump`: counted from 0; negative counts from the end."
            ),
            *FILTERS,
        ],
        responses=ReaderOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Go to the current, next or previous passage, jump to a place, or start again; the cursor remembers the place."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        if given := text(request, "cursor"):
            cursor = ReaderCursor.from_text(given)
            if cursor.collection_id != collection.pk:
                raise serializers.ValidationError({"cursor": ["It belongs to another collection."]})
        else:
            cursor = ReaderCursor(collection.pk, filter_of(request))
        step = self._step(request, cursor)
        place, total = chunk_reader.reader_place(actor=self.actor, cursor=step.cursor)
        told = {"cursor": step.cursor.to_text(), "chunk": step.chunk, "place": place, "total": total}
        return Response(ReaderOutput(told).data)

    def _step(self, request: Request, cursor: ReaderCursor) -> ReaderStep:
        word = choice(request, "step", STEPS, "next")
        if word == "reset":
            return ReaderStep(chunk_reader.reader_reset(cursor), None)
        if word == "jump":
            place = number(request, "place", low=-(2**31), high=2**31 - 1)
            if place is None:
                raise serializers.ValidationError({"place": ["Say where to jump."]})
            return chunk_reader.reader_jump(actor=self.actor, cursor=cursor, place=place)
        steps = {
            "current": chunk_reader.reader_current,
            "next": chunk_reader.reader_next,
            "previous": chunk_reader.reader_previous,
        }
        return steps[word](actor=self.actor, cursor=cursor)


class ChunkView(TenantAPIView):
    """One chunk."""

    actions = {"GET": "collection.read", "PATCH": "document.write"}

    @extend_schema(operation_id="chunks_get", tags=["chunks"], responses=ChunkDetailOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a passage with the ids of its neighbours in the document."""
        detail = selectors.chunk_get(actor=self.actor, pk=pk)
        chunk: Any = detail.chunk
        chunk.previous_id = detail.previous.pk if detail.previous else None
        chunk.next_id = detail.next.pk if detail.next else None
        return Response(ChunkDetailOutput(chunk).data)

    @extend_schema(
        operation_id="chunks_change", tags=["chunks"], request=ChunkInput, responses=ChunkDetailOutput
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change a passage's text, or exclude it from search; both are kept in its history."""
        chunk = selectors.chunk_get(actor=self.actor, pk=pk).chunk
        values = valid(ChunkInput, request.data)
        service = services.chunk_edit if "text" in values else services.chunk_disable
        service(tenant=self.tenant, actor=self.actor, chunk=chunk, **values)
        return self.get(request, pk)


class ChunkLinksView(TenantAPIView):
    """Links of a chunk."""

    actions = {"GET": "collection.read"}
    may_lag = frozenset({"GET"})
    pagination_class = WholeList

    @extend_schema(
        operation_id="chunk_links_list",
        tags=["chunks"],
        parameters=[
            OpenApiParameter("direction", str, enum=["outgoing", "incoming", "both"]),
            OpenApiParameter("relation", str, description="Only these."),
        ],
        responses=LinkOutput(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """List what a chunk links to, or what links to it, strongest first."""
        chunk = selectors.chunk_get(actor=self.actor, pk=pk).chunk
        found = chunk_links.chunk_links(
            actor=self.actor,
            chunk=chunk,
            direction=choice(request, "direction", ("outgoing", "incoming", "both"), "outgoing"),  # type: ignore[arg-type]
            relation=text(request, "relation"),
        )
        return self.paginated(found, LinkOutput)


class ChunkChainView(TenantAPIView):
    """A chain of linked chunks."""

    actions = {"GET": "collection.read"}
    may_lag = frozenset({"GET"})
    pagination_class = WholeList

    @extend_schema(
        operation_id="chunk_chain_walk",
        tags=["chunks"],
        parameters=[
            OpenApiParameter("relation", str, many=True, description="Links to follow; default: `next`."),
            OpenApiParameter("depth", int, description="Maximum steps, 1 to 100; default: 10."),
        ],
        responses=ChainStepOutput(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """Follow a passage's strongest links, visiting each passage once."""
        chunk = selectors.chunk_get(actor=self.actor, pk=pk).chunk
        walked = chunk_links.chain_walk(
            actor=self.actor,
            chunk=chunk,
            relations=tuple(request.query_params.getlist("relation")) or ("next",),
            depth=number(request, "depth", low=1, high=chunk_links.MAX_DEPTH) or 10,
        )
        return self.paginated(walked, ChainStepOutput)


class ChunkNeighboursView(TenantAPIView):
    """What stands around a chunk."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="chunk_neighbours_get",
        tags=["chunks"],
        parameters=[OpenApiParameter("reach", int, description="Passages on each side, 1 to 20.")],
        responses=NeighboursOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return the chunks before and after a chunk in its document."""
        chunk = selectors.chunk_get(actor=self.actor, pk=pk).chunk
        reach = number(request, "reach", low=1, high=MAX_NEIGHBOURS) or 1
        around = range(max(0, chunk.index - reach), chunk.index + reach + 1)
        rows = chunk_reader.chunk_rows(
            actor=self.actor, collection=chunk.collection, where=ChunkFilter(document_id=chunk.document_id)
        ).filter(index__in=around)
        near: list[Chunk] = list(rows)
        told = {
            "before": [c for c in near if c.index < chunk.index],
            "chunk": chunk,
            "after": [c for c in near if c.index > chunk.index],
        }
        return Response(NeighboursOutput(told).data)


class ChunkGraphView(TenantAPIView):
    """The code graph around a chunk."""

    actions = {"GET": "collection.read"}

    @extend_schema(operation_id="chunk_graph_get", tags=["chunks"], responses=CodeEdgesOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return what a code passage defines, imports, calls and inherits from, and what uses it in these ways."""
        chunk = selectors.chunk_get(actor=self.actor, pk=pk).chunk
        outgoing, incoming = edges_of_chunk(actor=self.actor, chunk=chunk)
        return Response(CodeEdgesOutput({"outgoing": outgoing, "incoming": incoming}).data)


class ChunkHistoryView(TenantAPIView):
    """Changes of a chunk."""

    actions = {"GET": "collection.read"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(operation_id="chunk_history_list", tags=["chunks"], responses=RevisionOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List what people have changed in a chunk, newest first."""
        chunk = selectors.chunk_get(actor=self.actor, pk=pk).chunk
        return self.paginated(history.chunk_revisions(actor=self.actor, chunk=chunk), RevisionOutput)


class ChunkRestoreView(TenantAPIView):
    """The way back from a change."""

    actions = {"POST": "document.write"}

    @extend_schema(operation_id="chunk_history_restore", tags=["chunks"], request=None, responses=ChunkOutput)
    def post(self, request: Request, pk: int) -> Response:
        """Restore a passage to its state before this change."""
        revision = history.chunk_revision_get(actor=self.actor, pk=pk)
        row = services.chunk_restore(tenant=self.tenant, actor=self.actor, revision=revision)
        return Response(ChunkOutput(row).data)


class CollectionStatisticsView(TenantAPIView):
    """Figures of a collection's chunks."""

    actions = {"GET": "collection.read"}

    @extend_schema(operation_id="chunk_statistics_get", tags=["chunks"], responses=StatisticsOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return counts, sizes, kinds, links and coverage of the chunks of a collection's live documents."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        return Response(StatisticsOutput(chunk_statistics(actor=self.actor, collection=collection)).data)


class DocumentStatisticsView(TenantAPIView):
    """Figures of a document's chunks."""

    actions = {"GET": "collection.read"}

    @extend_schema(operation_id="document_statistics_get", tags=["chunks"], responses=StatisticsOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return counts, sizes, kinds, links and coverage of a document's chunks."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        found = chunk_statistics(actor=self.actor, collection=document.collection, document=document)
        return Response(StatisticsOutput(found).data)

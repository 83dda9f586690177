"""The operations of the API. Generated from docs/openapi.yaml by `make client`: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast

from groundwork_client import models
from groundwork_client.transport import Event, Transport


class Groundwork(Transport):
    """The workspace of an API key; a method for each operation, named as in the API's reference."""

    def access_explain(self, *, subject: str | None = None) -> models.Access:
        """Tell what a member, a key or a role can see and do, and which grant decides; others than oneself need
        `tool.manage`. subject: `role:viewer`, `member:<user id>` or `api_key:<id>`; default: yourself."""
        return cast("models.Access", self._call("GET", "/api/v1/access", query={"subject": subject}))

    def access_try(self, body: models.AccessTryInputRequest, *, idempotency_key: str | None = None) -> models.AccessTry:
        """Tell what would become of a call, and why; nothing runs and nobody is asked."""
        return cast("models.AccessTry", self._call("POST", "/api/v1/access/try", body=body, idempotency_key=idempotency_key))

    def annotation_queues_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedQueueOutputList:
        """List queues, the newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedQueueOutputList", self._call("GET", "/api/v1/annotation-queues", query={"cursor": cursor, "page_size": page_size}))

    def annotation_queues_list_all(self, *, page_size: int | None = None) -> Iterator[models.QueueOutput]:
        """Go through all rows of ``annotation_queues_list``, page by page."""
        return self._every(lambda cursor: self.annotation_queues_list(page_size=page_size, cursor=cursor))

    def annotation_queues_create(self, body: models.QueueInputRequest, *, idempotency_key: str | None = None) -> models.QueueOutput:
        """Create a queue of an experiment's answers, or of those in a dataset's rows."""
        return cast("models.QueueOutput", self._call("POST", "/api/v1/annotation-queues", body=body, idempotency_key=idempotency_key))

    def annotation_queues_get(self, id: int) -> models.QueueOutput:
        """Return a queue with its totals."""
        return cast("models.QueueOutput", self._call("GET", f"/api/v1/annotation-queues/{id}"))

    def annotation_queues_act(self, id: int, body: models.QueueStateInputRequest, *, idempotency_key: str | None = None) -> models.QueueOutput:
        """Close or reopen a queue."""
        return cast("models.QueueOutput", self._call("POST", f"/api/v1/annotation-queues/{id}", body=body, idempotency_key=idempotency_key))

    def annotation_queues_next(self, id: int, *, idempotency_key: str | None = None) -> models.TakenOutput:
        """Take the next answer to grade; the same one until it is decided about."""
        return cast("models.TakenOutput", self._call("POST", f"/api/v1/annotation-queues/{id}/next", idempotency_key=idempotency_key))

    def annotation_queues_progress(self, id: int) -> models.ProgressOutput:
        """Return a queue's progress, and who graded how much."""
        return cast("models.ProgressOutput", self._call("GET", f"/api/v1/annotation-queues/{id}/progress"))

    def annotation_queues_undo(self, id: int, *, idempotency_key: str | None = None) -> models.AssignmentOutput:
        """Open what one graded or skipped last; its grades count no more."""
        return cast("models.AssignmentOutput", self._call("POST", f"/api/v1/annotation-queues/{id}/undo", idempotency_key=idempotency_key))

    def approvals_list(self, *, box: Literal['all', 'decided', 'to_decide', 'waiting'] | None = None, cursor: str | None = None, page_size: int | None = None, tool: str | None = None) -> models.PaginatedDecisionList:
        """List approvals, newest first; decide about one with `POST /runs/{run_id}/decisions/{id}`. box:
        `to_decide`: yours to decide now; `waiting`: you asked, others decide; `decided`: over; `all`: everything
        you can see. cursor: The pagination cursor value. page_size: Number of results to return per page. tool:
        Only calls of this tool."""
        return cast("models.PaginatedDecisionList", self._call("GET", "/api/v1/approvals", query={"box": box, "cursor": cursor, "page_size": page_size, "tool": tool}))

    def approvals_list_all(self, *, box: Literal['all', 'decided', 'to_decide', 'waiting'] | None = None, page_size: int | None = None, tool: str | None = None) -> Iterator[models.Decision]:
        """Go through all rows of ``approvals_list``, page by page."""
        return self._every(lambda cursor: self.approvals_list(box=box, page_size=page_size, tool=tool, cursor=cursor))

    def approvals_hand_over(self, id: int, body: models.HandOverInputRequest, *, idempotency_key: str | None = None) -> models.Decision:
        """Hand a decision over to another member who may decide; who could before still can."""
        return cast("models.Decision", self._call("POST", f"/api/v1/approvals/{id}/hand-over", body=body, idempotency_key=idempotency_key))

    def arms_promote(self, id: int, body: models.BaselineInputRequest | None = None, *, idempotency_key: str | None = None) -> models.BaselineOutput:
        """Make an arm the baseline of its dataset from now on."""
        return cast("models.BaselineOutput", self._call("POST", f"/api/v1/arms/{id}/baseline", body=body or {}, idempotency_key=idempotency_key))

    def arms_compare(self, id: int, *, against: int, calibrated: bool | None = None, score: str | None = None) -> models.ComparisonOutput:
        """Compare this arm (B) with another (A) over the rows that both have. against: Id of the arm to compare
        with (A). calibrated: Adjust judges' scores to people's grades, using the newest calibration. score: The
        score that decides; default: the weighted mean."""
        return cast("models.ComparisonOutput", self._call("GET", f"/api/v1/arms/{id}/comparison", query={"against": against, "calibrated": calibrated, "score": score}))

    def arms_failures(self, id: int, *, page: int | None = None, tag: str | None = None) -> models.FailuresOutput:
        """Return an arm's failing rows by tag, and in groups of rows that are alike. page: 200 rows each, from 1;
        beyond the last one the last. tag: Only rows with this tag, their own or people's."""
        return cast("models.FailuresOutput", self._call("GET", f"/api/v1/arms/{id}/failures", query={"page": page, "tag": tag}))

    def arms_failures_collect(self, id: int, body: models.CollectInputRequest, *, idempotency_key: str | None = None) -> models.CollectedOutput:
        """Create a dataset of the failing rows with a tag or of a group, with a version of them."""
        return cast("models.CollectedOutput", self._call("POST", f"/api/v1/arms/{id}/failures", body=body, idempotency_key=idempotency_key))

    def arms_failures_group(self, id: int, body: models.GroupingInputRequest | None = None, *, idempotency_key: str | None = None) -> models.GroupingOutput:
        """Have a job group a page of an arm's failing rows as they are now; its vectors count to the budgets."""
        return cast("models.GroupingOutput", self._call("POST", f"/api/v1/arms/{id}/failures/groups", body=body or {}, idempotency_key=idempotency_key))

    def arms_gate(self, id: int, body: models.GateInputRequest | None = None, *, idempotency_key: str | None = None) -> models.GateOutput:
        """Decide whether an arm may be released, by the baseline of its dataset. Nothing is changed."""
        return cast("models.GateOutput", self._call("POST", f"/api/v1/arms/{id}/gate", body=body or {}, idempotency_key=idempotency_key))

    def arms_gate_sarif(self, id: int, body: models.GateInputRequest | None = None, *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Decide as the gate does, and return the decision as a SARIF 2.1.0 log."""
        return cast("dict[str, Any]", self._call("POST", f"/api/v1/arms/{id}/gate/sarif", body=body or {}, idempotency_key=idempotency_key))

    def arms_repeats(self, id: int, *, score: str | None = None) -> models.RepeatsOutput:
        """Return how an arm's scores vary: between rows, answers and judgements, and which rows are flaky. score:
        The score to show; default: the weighted mean."""
        return cast("models.RepeatsOutput", self._call("GET", f"/api/v1/arms/{id}/repeats", query={"score": score}))

    def assignments_decide(self, id: int, body: models.GradeInputRequest, *, idempotency_key: str | None = None) -> models.AssignmentOutput:
        """Grade an answer, leave it to others, or make one's grades of it the right ones."""
        return cast("models.AssignmentOutput", self._call("POST", f"/api/v1/assignments/{id}", body=body, idempotency_key=idempotency_key))

    def assistants_list(self, *, archived: bool | None = None, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedAssistantList:
        """List assistants, the newest first. archived: Those that are archived, in place of the others. cursor: The
        pagination cursor value. page_size: Number of results to return per page."""
        return cast("models.PaginatedAssistantList", self._call("GET", "/api/v1/assistants", query={"archived": archived, "cursor": cursor, "page_size": page_size}))

    def assistants_list_all(self, *, archived: bool | None = None, page_size: int | None = None) -> Iterator[models.Assistant]:
        """Go through all rows of ``assistants_list``, page by page."""
        return self._every(lambda cursor: self.assistants_list(archived=archived, page_size=page_size, cursor=cursor))

    def assistants_create(self, body: models.AssistantInputRequest, *, idempotency_key: str | None = None) -> models.Assistant:
        """Create an assistant with its first version, which people can talk to once it is published."""
        return cast("models.Assistant", self._call("POST", "/api/v1/assistants", body=body, idempotency_key=idempotency_key))

    def assistants_get(self, id: int) -> models.Assistant:
        """Return an assistant."""
        return cast("models.Assistant", self._call("GET", f"/api/v1/assistants/{id}"))

    def assistants_update(self, id: int, body: models.PatchedAssistantUpdateRequest | None = None, *, idempotency_key: str | None = None) -> models.Assistant:
        """Change name or description, archive or restore; what it does is changed by a new version."""
        return cast("models.Assistant", self._call("PATCH", f"/api/v1/assistants/{id}", body=body or {}, idempotency_key=idempotency_key))

    def assistants_archive(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Archive an assistant: nobody can choose it any more. Its versions and conversations stay."""
        self._call("DELETE", f"/api/v1/assistants/{id}", idempotency_key=idempotency_key)

    def assistants_publish(self, id: int, body: models.PublishInputRequest, *, idempotency_key: str | None = None) -> models.Assistant:
        """Publish a version, an earlier one too: people talk to it from their next question on."""
        return cast("models.Assistant", self._call("POST", f"/api/v1/assistants/{id}/publish", body=body, idempotency_key=idempotency_key))

    def assistants_unpublish(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Take the published version back; nobody can ask the assistant until one is published."""
        self._call("DELETE", f"/api/v1/assistants/{id}/publish", idempotency_key=idempotency_key)

    def assistant_versions_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedAssistantVersionList:
        """List versions, the newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedAssistantVersionList", self._call("GET", f"/api/v1/assistants/{id}/versions", query={"cursor": cursor, "page_size": page_size}))

    def assistant_versions_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.AssistantVersion]:
        """Go through all rows of ``assistant_versions_list``, page by page."""
        return self._every(lambda cursor: self.assistant_versions_list(id, page_size=page_size, cursor=cursor))

    def assistant_versions_create(self, id: int, body: models.VersionInputRequest | None = None, *, idempotency_key: str | None = None) -> models.AssistantVersion:
        """Make the next version; versions are never changed."""
        return cast("models.AssistantVersion", self._call("POST", f"/api/v1/assistants/{id}/versions", body=body or {}, idempotency_key=idempotency_key))

    def assistant_versions_get(self, id: int, number: int) -> models.AssistantVersion:
        """Return a version."""
        return cast("models.AssistantVersion", self._call("GET", f"/api/v1/assistants/{id}/versions/{number}"))

    def assistant_versions_changes(self, id: int, number: int, *, against: int | None = None) -> models.AssistantChanges:
        """Return in what a version differs from another; the first one differs from nothing. against: Number of the
        version to compare with; the one before it if not given."""
        return cast("models.AssistantChanges", self._call("GET", f"/api/v1/assistants/{id}/versions/{number}/changes", query={"against": against}))

    def budgets_list(self) -> models.PaginatedBudgetList:
        """List the budgets with what is spent and held."""
        return cast("models.PaginatedBudgetList", self._call("GET", "/api/v1/budgets"))

    def budgets_set(self, body: models.BudgetInputRequest, *, idempotency_key: str | None = None) -> models.Budget:
        """Set a budget, or another amount for the one of the same subject and period."""
        return cast("models.Budget", self._call("POST", "/api/v1/budgets", body=body, idempotency_key=idempotency_key))

    def budgets_get(self, id: int) -> models.Budget:
        """Return a budget with what is spent and held."""
        return cast("models.Budget", self._call("GET", f"/api/v1/budgets/{id}"))

    def budgets_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Remove a budget; what was spent stays recorded."""
        self._call("DELETE", f"/api/v1/budgets/{id}", idempotency_key=idempotency_key)

    def budgets_rules(self) -> models.BudgetRules:
        """Tell whether models without a known price are refused while a budget applies."""
        return cast("models.BudgetRules", self._call("GET", "/api/v1/budgets/rules"))

    def budgets_rules_set(self, body: models.BudgetRulesRequest, *, idempotency_key: str | None = None) -> models.BudgetRules:
        """Say whether they are."""
        return cast("models.BudgetRules", self._call("PUT", "/api/v1/budgets/rules", body=body, idempotency_key=idempotency_key))

    def chat_completions(self, body: models.ChatCompletionShapeRequest, *, idempotency_key: str | None = None) -> models.ChatCompletion:
        """Answer a chat: at once, or as a stream of chunks."""
        return cast("models.ChatCompletion", self._call("POST", "/api/v1/chat/completions", body=body, idempotency_key=idempotency_key))

    def chunk_history_restore(self, id: int, *, idempotency_key: str | None = None) -> models.Chunk:
        """Put a chunk back to what it was before this change."""
        return cast("models.Chunk", self._call("POST", f"/api/v1/chunk-changes/{id}/restore", idempotency_key=idempotency_key))

    def chunks_get(self, id: int) -> models.ChunkDetail:
        """Return a passage with the ids of its neighbours in the document."""
        return cast("models.ChunkDetail", self._call("GET", f"/api/v1/chunks/{id}"))

    def chunks_change(self, id: int, body: models.PatchedChunkChangeRequest | None = None, *, idempotency_key: str | None = None) -> models.ChunkDetail:
        """Give a chunk another text, or leave it out of search; both are kept in its history."""
        return cast("models.ChunkDetail", self._call("PATCH", f"/api/v1/chunks/{id}", body=body or {}, idempotency_key=idempotency_key))

    def chunk_chain_walk(self, id: int, *, depth: int | None = None, relation: list[str] | None = None) -> models.PaginatedChainStepList:
        """Walk from a chunk along its strongest links, never to a chunk twice. depth: Steps at most, 1 to 100; 10
        if not given. relation: Links to follow; `next` if not given."""
        return cast("models.PaginatedChainStepList", self._call("GET", f"/api/v1/chunks/{id}/chain", query={"depth": depth, "relation": relation}))

    def chunk_graph_get(self, id: int) -> models.CodeEdges:
        """Return what a chunk of code defines, imports, calls and inherits from, and what does so with it."""
        return cast("models.CodeEdges", self._call("GET", f"/api/v1/chunks/{id}/graph"))

    def chunk_history_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedChunkRevisionList:
        """List what people have changed in a chunk, newest first. cursor: The pagination cursor value. page_size:
        Number of results to return per page."""
        return cast("models.PaginatedChunkRevisionList", self._call("GET", f"/api/v1/chunks/{id}/history", query={"cursor": cursor, "page_size": page_size}))

    def chunk_history_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.ChunkRevision]:
        """Go through all rows of ``chunk_history_list``, page by page."""
        return self._every(lambda cursor: self.chunk_history_list(id, page_size=page_size, cursor=cursor))

    def chunk_links_list(self, id: int, *, direction: Literal['both', 'incoming', 'outgoing'] | None = None, relation: str | None = None) -> models.PaginatedChunkLinkList:
        """List what a chunk links to, or what links to it, strongest first. relation: These alone."""
        return cast("models.PaginatedChunkLinkList", self._call("GET", f"/api/v1/chunks/{id}/links", query={"direction": direction, "relation": relation}))

    def chunk_neighbours_get(self, id: int, *, reach: int | None = None) -> models.ChunkNeighbours:
        """Return the chunks before and after a chunk in its document. reach: Chunks on either side, 1 to 20."""
        return cast("models.ChunkNeighbours", self._call("GET", f"/api/v1/chunks/{id}/neighbours", query={"reach": reach}))

    def code_patterns_get(self) -> models.CodePatterns:
        """Return the patterns, null when there are none, and which of them took too long on some passages."""
        return cast("models.CodePatterns", self._call("GET", "/api/v1/code-patterns"))

    def code_patterns_set(self, body: models.CodePatternsChangeRequest, *, idempotency_key: str | None = None) -> models.CodePatterns:
        """Replace the patterns; passages that are here are indexed by them in the background. Null removes them."""
        return cast("models.CodePatterns", self._call("PUT", "/api/v1/code-patterns", body=body, idempotency_key=idempotency_key))

    def collections_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedCollectionList:
        """List collections with their counts, newest first. cursor: The pagination cursor value. page_size: Number
        of results to return per page."""
        return cast("models.PaginatedCollectionList", self._call("GET", "/api/v1/collections", query={"cursor": cursor, "page_size": page_size}))

    def collections_list_all(self, *, page_size: int | None = None) -> Iterator[models.Collection]:
        """Go through all rows of ``collections_list``, page by page."""
        return self._every(lambda cursor: self.collections_list(page_size=page_size, cursor=cursor))

    def collections_create(self, body: models.CollectionInputRequest, *, idempotency_key: str | None = None) -> models.Collection:
        """Create a collection."""
        return cast("models.Collection", self._call("POST", "/api/v1/collections", body=body, idempotency_key=idempotency_key))

    def collections_get(self, id: int) -> models.Collection:
        """Return a collection."""
        return cast("models.Collection", self._call("GET", f"/api/v1/collections/{id}"))

    def collections_update(self, id: int, body: models.PatchedCollectionInputRequest | None = None, *, idempotency_key: str | None = None) -> models.Collection:
        """Change name, description or chunk sizes; sizes count for documents added from now on."""
        return cast("models.Collection", self._call("PATCH", f"/api/v1/collections/{id}", body=body or {}, idempotency_key=idempotency_key))

    def collections_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Delete a collection with everything in it."""
        self._call("DELETE", f"/api/v1/collections/{id}", idempotency_key=idempotency_key)

    def ingestion_check(self, id: int) -> models.IngestionCheck:
        """Compare documents, chunks, vectors and statistics with each other and list what is wrong."""
        return cast("models.IngestionCheck", self._call("GET", f"/api/v1/collections/{id}/check"))

    def ingestion_repair(self, id: int, *, idempotency_key: str | None = None) -> models.IngestionCheck:
        """The same, and put right what can be; the rest is returned with advice."""
        return cast("models.IngestionCheck", self._call("POST", f"/api/v1/collections/{id}/check", idempotency_key=idempotency_key))

    def chunks_list(self, id: int, *, cursor: str | None = None, document_id: int | None = None, has_points: bool | None = None, header: str | None = None, header_match: Literal['contains', 'exact'] | None = None, is_disabled: bool | None = None, is_edited: bool | None = None, kind: list[Literal['class', 'doc', 'file', 'function', 'table']] | None = None, page: int | None = None, page_size: int | None = None, path: str | None = None, path_prefix: str | None = None, points_by: Literal['model', 'rule'] | None = None, qualified_name: str | None = None, relation: str | None = None, text: str | None = None) -> models.PaginatedChunkList:
        """List the chunks of a collection's live documents that match all filters, with key points. cursor: The
        pagination cursor value. document_id: Of this document alone. header: Under a heading of this title.
        page_size: Number of results to return per page. path: Of the source file at this path. path_prefix: Of
        files below this folder. qualified_name: Code whose full name begins so. relation: With a link of this
        relation; `any` for any. text: With these characters, case aside."""
        return cast("models.PaginatedChunkList", self._call("GET", f"/api/v1/collections/{id}/chunks", query={"cursor": cursor, "document_id": document_id, "has_points": has_points, "header": header, "header_match": header_match, "is_disabled": is_disabled, "is_edited": is_edited, "kind": kind, "page": page, "page_size": page_size, "path": path, "path_prefix": path_prefix, "points_by": points_by, "qualified_name": qualified_name, "relation": relation, "text": text}))

    def chunks_list_all(self, id: int, *, document_id: int | None = None, has_points: bool | None = None, header: str | None = None, header_match: Literal['contains', 'exact'] | None = None, is_disabled: bool | None = None, is_edited: bool | None = None, kind: list[Literal['class', 'doc', 'file', 'function', 'table']] | None = None, page: int | None = None, page_size: int | None = None, path: str | None = None, path_prefix: str | None = None, points_by: Literal['model', 'rule'] | None = None, qualified_name: str | None = None, relation: str | None = None, text: str | None = None) -> Iterator[models.Chunk]:
        """Go through all rows of ``chunks_list``, page by page."""
        return self._every(lambda cursor: self.chunks_list(id, document_id=document_id, has_points=has_points, header=header, header_match=header_match, is_disabled=is_disabled, is_edited=is_edited, kind=kind, page=page, page_size=page_size, path=path, path_prefix=path_prefix, points_by=points_by, qualified_name=qualified_name, relation=relation, text=text, cursor=cursor))

    def documents_list(self, id: int, *, cursor: str | None = None, document_type: str | None = None, page_size: int | None = None, q: str | None = None, source: Literal['archive', 'chroma', 'folder', 'git', 'tool', 'upload', 'url'] | None = None, status: Literal['cancelled', 'failed', 'processing', 'queued', 'ready'] | None = None, tag: str | None = None) -> models.PaginatedDocumentList:
        """List the current versions of a collection's documents with status and counts, newest first. cursor: The
        pagination cursor value. document_type: `-` for documents without one. page_size: Number of results to
        return per page. q: Part of a path, any case. status: Only these."""
        return cast("models.PaginatedDocumentList", self._call("GET", f"/api/v1/collections/{id}/documents", query={"cursor": cursor, "document_type": document_type, "page_size": page_size, "q": q, "source": source, "status": status, "tag": tag}))

    def documents_list_all(self, id: int, *, document_type: str | None = None, page_size: int | None = None, q: str | None = None, source: Literal['archive', 'chroma', 'folder', 'git', 'tool', 'upload', 'url'] | None = None, status: Literal['cancelled', 'failed', 'processing', 'queued', 'ready'] | None = None, tag: str | None = None) -> Iterator[models.Document]:
        """Go through all rows of ``documents_list``, page by page."""
        return self._every(lambda cursor: self.documents_list(id, document_type=document_type, page_size=page_size, q=q, source=source, status=status, tag=tag, cursor=cursor))

    def documents_upload(self, id: int, body: models.UploadRequest, *, idempotency_key: str | None = None) -> models.UploadedDocument | models.ImportDetail:
        """Upload a file and start its ingestion; the same bytes again return the existing document (200).  An
        archive (ZIP, TAR) is imported file by file; the answer (202) is that import."""
        return cast("models.UploadedDocument | models.ImportDetail", self._call("POST", f"/api/v1/collections/{id}/documents", form=cast("dict[str, Any]", body), idempotency_key=idempotency_key))

    def files_list(self, id: int, *, folder: str | None = None, limit: int | None = None, offset: int | None = None, pattern: str | None = None, recursive: bool | None = None, show_hidden: bool | None = None) -> models.FileListing:
        """List a folder of the collection: folders first, then files, by name."""
        return cast("models.FileListing", self._call("GET", f"/api/v1/collections/{id}/files", query={"folder": folder, "limit": limit, "offset": offset, "pattern": pattern, "recursive": recursive, "show_hidden": show_hidden}))

    def files_changes(self, id: int, *, cursor: str | None = None, page_size: int | None = None, path: str | None = None) -> models.PaginatedFileChangeList:
        """List the changes of the collection's files, newest first, each with the files that you may see. cursor:
        The pagination cursor value. page_size: Number of results to return per page."""
        return cast("models.PaginatedFileChangeList", self._call("GET", f"/api/v1/collections/{id}/files/changes", query={"cursor": cursor, "page_size": page_size, "path": path}))

    def files_changes_all(self, id: int, *, page_size: int | None = None, path: str | None = None) -> Iterator[models.FileChange]:
        """Go through all rows of ``files_changes``, page by page."""
        return self._every(lambda cursor: self.files_changes(id, page_size=page_size, path=path, cursor=cursor))

    def files_read(self, id: int, *, encoding: str | None = None, end: int | None = None, path: str, start: int | None = None) -> models.File:
        """Read lines of a file; 500 when no end is given, 2000 at most."""
        return cast("models.File", self._call("GET", f"/api/v1/collections/{id}/files/content", query={"encoding": encoding, "end": end, "path": path, "start": start}))

    def files_write(self, id: int, body: models.FileWriteInputRequest, *, idempotency_key: str | None = None) -> models.FilesChanged:
        """Write a whole file, new or in place of the one that is there."""
        return cast("models.FilesChanged", self._call("PUT", f"/api/v1/collections/{id}/files/content", body=body, idempotency_key=idempotency_key))

    def files_delete(self, id: int, *, expected: str | None = None, path: str, idempotency_key: str | None = None) -> None:
        """Delete a file and its document; it can be undone."""
        self._call("DELETE", f"/api/v1/collections/{id}/files/content", query={"expected": expected, "path": path}, idempotency_key=idempotency_key)

    def files_diff(self, id: int, *, other: str | None = None, other_revision: int | None = None, path: str | None = None, revision: int | None = None) -> models.FileDiff:
        """Compare two files (path, other), show what a revision changed, or compare two revisions."""
        return cast("models.FileDiff", self._call("GET", f"/api/v1/collections/{id}/files/diff", query={"other": other, "other_revision": other_revision, "path": path, "revision": revision}))

    def files_edit(self, id: int, body: models.FilesEditInputRequest, *, idempotency_key: str | None = None) -> models.FilesChanged:
        """Edit several files by lines or exact text; all edits are made, or none."""
        return cast("models.FilesChanged", self._call("POST", f"/api/v1/collections/{id}/files/edit", body=body, idempotency_key=idempotency_key))

    def files_move(self, id: int, body: models.FileMoveInputRequest, *, idempotency_key: str | None = None) -> models.FilesChanged:
        """Move a file; its document keeps versions and limits."""
        return cast("models.FilesChanged", self._call("POST", f"/api/v1/collections/{id}/files/move", body=body, idempotency_key=idempotency_key))

    def files_redo(self, id: int, body: models.ChangeInputRequest | None = None, *, idempotency_key: str | None = None) -> models.FilesChanged:
        """Make a change again that was taken back."""
        return cast("models.FilesChanged", self._call("POST", f"/api/v1/collections/{id}/files/redo", body=body or {}, idempotency_key=idempotency_key))

    def files_restore(self, id: int, body: models.RestoreInputRequest, *, idempotency_key: str | None = None) -> models.FilesChanged:
        """Give a file the content it had after a revision."""
        return cast("models.FilesChanged", self._call("POST", f"/api/v1/collections/{id}/files/restore", body=body, idempotency_key=idempotency_key))

    def files_rules(self, id: int) -> models.FileRules:
        """Return what file tools may touch."""
        return cast("models.FileRules", self._call("GET", f"/api/v1/collections/{id}/files/rules"))

    def files_rules_set(self, id: int, body: models.FileRulesRequest | None = None, *, idempotency_key: str | None = None) -> models.FileRules:
        """Replace the rules; what is left out gets its default."""
        return cast("models.FileRules", self._call("PUT", f"/api/v1/collections/{id}/files/rules", body=body or {}, idempotency_key=idempotency_key))

    def files_search(self, id: int, *, case: bool | None = None, folder: str | None = None, kind: Literal['name', 'regex', 'text'] | None = None, limit: int | None = None, names: str | None = None, offset: int | None = None, query: str) -> models.FileMatches:
        """Find lines by text or regular expression, or files by name; the search ends after five seconds."""
        return cast("models.FileMatches", self._call("GET", f"/api/v1/collections/{id}/files/search", query={"case": case, "folder": folder, "kind": kind, "limit": limit, "names": names, "offset": offset, "query": query}))

    def files_structure(self, id: int, *, depth: int | None = None, folder: str | None = None) -> models.ProjectStructure:
        """Return folders and files with sizes and languages, three levels deep unless told otherwise."""
        return cast("models.ProjectStructure", self._call("GET", f"/api/v1/collections/{id}/files/structure", query={"depth": depth, "folder": folder}))

    def files_syntax(self, id: int, *, path: str) -> models.SyntaxCheck:
        """Say where a source, JSON, TOML or YAML file breaks its grammar."""
        return cast("models.SyntaxCheck", self._call("GET", f"/api/v1/collections/{id}/files/syntax", query={"path": path}))

    def files_undo(self, id: int, body: models.ChangeInputRequest | None = None, *, idempotency_key: str | None = None) -> models.FilesChanged:
        """Take a change back as a whole; refused (409) when one of its files was changed since."""
        return cast("models.FilesChanged", self._call("POST", f"/api/v1/collections/{id}/files/undo", body=body or {}, idempotency_key=idempotency_key))

    def git_blame(self, id: int, *, path: str, ref: str | None = None, repository: str | None = None) -> models.GitBlame:
        """Tell for each line of a file which commit brought it, by whom and when. repository: Its folder, where the
        collection has several."""
        return cast("models.GitBlame", self._call("GET", f"/api/v1/collections/{id}/git/blame", query={"path": path, "ref": ref, "repository": repository}))

    def git_commit(self, id: int, body: models.GitCommitInputRequest, *, idempotency_key: str | None = None) -> models.GitCommit:
        """Commit files as they are now on top of the last commit; you are the author."""
        return cast("models.GitCommit", self._call("POST", f"/api/v1/collections/{id}/git/commit", body=body, idempotency_key=idempotency_key))

    def git_diff(self, id: int, *, new: str | None = None, old: str | None = None, path: str | None = None, repository: str | None = None) -> models.GitDiff:
        """Show what changed from one commit to another, or to the files as they are now. repository: Its folder,
        where the collection has several."""
        return cast("models.GitDiff", self._call("GET", f"/api/v1/collections/{id}/git/diff", query={"new": new, "old": old, "path": path, "repository": repository}))

    def git_log(self, id: int, *, limit: int | None = None, path: str | None = None, ref: str | None = None, repository: str | None = None, skip: int | None = None) -> models.GitLog:
        """List commits, newest first. repository: Its folder, where the collection has several."""
        return cast("models.GitLog", self._call("GET", f"/api/v1/collections/{id}/git/log", query={"limit": limit, "path": path, "ref": ref, "repository": repository, "skip": skip}))

    def git_status(self, id: int, *, repository: str | None = None) -> models.GitStatus:
        """Compare the last commit and the files as they are now. repository: Its folder, where the collection has
        several."""
        return cast("models.GitStatus", self._call("GET", f"/api/v1/collections/{id}/git/status", query={"repository": repository}))

    def imports_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedImportList:
        """List a collection's imports, newest first. cursor: The pagination cursor value. page_size: Number of
        results to return per page."""
        return cast("models.PaginatedImportList", self._call("GET", f"/api/v1/collections/{id}/imports", query={"cursor": cursor, "page_size": page_size}))

    def imports_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.Import]:
        """Go through all rows of ``imports_list``, page by page."""
        return self._every(lambda cursor: self.imports_list(id, page_size=page_size, cursor=cursor))

    def imports_start(self, id: int, body: models.ImportStartRequest, *, idempotency_key: str | None = None) -> models.ImportDetail:
        """Start an import of an archive, folder, repository, Chroma collection or web pages."""
        return cast("models.ImportDetail", self._call("POST", f"/api/v1/collections/{id}/imports", body=body, idempotency_key=idempotency_key))

    def chunks_read(self, id: int, *, cursor: str | None = None, document_id: int | None = None, has_points: bool | None = None, header: str | None = None, header_match: Literal['contains', 'exact'] | None = None, is_disabled: bool | None = None, is_edited: bool | None = None, kind: list[Literal['class', 'doc', 'file', 'function', 'table']] | None = None, page: int | None = None, path: str | None = None, path_prefix: str | None = None, place: int | None = None, points_by: Literal['model', 'rule'] | None = None, qualified_name: str | None = None, relation: str | None = None, step: Literal['current', 'jump', 'next', 'previous', 'reset'] | None = None, text: str | None = None) -> models.Reader:
        """Go to the current, next or previous chunk, jump to a place, or begin anew; the cursor remembers the
        place. cursor: Of the step before; filters are in it. document_id: Of this document alone. header: Under a
        heading of this title. path: Of the source file at this path. path_prefix: Of files below this folder.
        place: For `jump`: from 0; negative from the end. qualified_name: Code whose full name begins so. relation:
        With a link of this relation; `any` for any. step: `next` if not given. text: With these characters, case
        aside."""
        return cast("models.Reader", self._call("GET", f"/api/v1/collections/{id}/reader", query={"cursor": cursor, "document_id": document_id, "has_points": has_points, "header": header, "header_match": header_match, "is_disabled": is_disabled, "is_edited": is_edited, "kind": kind, "page": page, "path": path, "path_prefix": path_prefix, "place": place, "points_by": points_by, "qualified_name": qualified_name, "relation": relation, "step": step, "text": text}))

    def collections_reindex(self, id: int, *, idempotency_key: str | None = None) -> models.Count:
        """Read every live document of a collection again, for example after its chunk sizes were changed."""
        return cast("models.Count", self._call("POST", f"/api/v1/collections/{id}/reindex", idempotency_key=idempotency_key))

    def search_cases_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedSearchCaseList:
        """List the questions saved for evaluation, newest first. cursor: The pagination cursor value. page_size:
        Number of results to return per page."""
        return cast("models.PaginatedSearchCaseList", self._call("GET", f"/api/v1/collections/{id}/search-cases", query={"cursor": cursor, "page_size": page_size}))

    def search_cases_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.SearchCase]:
        """Go through all rows of ``search_cases_list``, page by page."""
        return self._every(lambda cursor: self.search_cases_list(id, page_size=page_size, cursor=cursor))

    def search_cases_save(self, id: int, body: models.SearchCaseInputRequest, *, idempotency_key: str | None = None) -> models.SearchCase:
        """Save a question with the passages that should answer it."""
        return cast("models.SearchCase", self._call("POST", f"/api/v1/collections/{id}/search-cases", body=body, idempotency_key=idempotency_key))

    def snapshots_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedSnapshotList:
        """List the moments that have a name, to search as of. cursor: The pagination cursor value. page_size:
        Number of results to return per page."""
        return cast("models.PaginatedSnapshotList", self._call("GET", f"/api/v1/collections/{id}/snapshots", query={"cursor": cursor, "page_size": page_size}))

    def snapshots_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.Snapshot]:
        """Go through all rows of ``snapshots_list``, page by page."""
        return self._every(lambda cursor: self.snapshots_list(id, page_size=page_size, cursor=cursor))

    def snapshots_create(self, id: int, body: models.SnapshotInputRequest, *, idempotency_key: str | None = None) -> models.Snapshot:
        """Give a moment of the collection a name; as far back as versions are kept, it can be searched as it
        was."""
        return cast("models.Snapshot", self._call("POST", f"/api/v1/collections/{id}/snapshots", body=body, idempotency_key=idempotency_key))

    def chunk_statistics_get(self, id: int) -> models.ChunkStatistics:
        """Return counts, sizes, kinds, links and coverage of the chunks of a collection's live documents."""
        return cast("models.ChunkStatistics", self._call("GET", f"/api/v1/collections/{id}/statistics"))

    def swaps_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedSpaceSwapList:
        """List the moves of a collection to other embedding models, newest first. cursor: The pagination cursor
        value. page_size: Number of results to return per page."""
        return cast("models.PaginatedSpaceSwapList", self._call("GET", f"/api/v1/collections/{id}/swaps", query={"cursor": cursor, "page_size": page_size}))

    def swaps_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.SpaceSwap]:
        """Go through all rows of ``swaps_list``, page by page."""
        return self._every(lambda cursor: self.swaps_list(id, page_size=page_size, cursor=cursor))

    def swaps_start(self, id: int, body: models.SpaceSwapInputRequest, *, idempotency_key: str | None = None) -> models.SpaceSwap:
        """Begin to make vectors of another model beside the live ones; search goes on with these."""
        return cast("models.SpaceSwap", self._call("POST", f"/api/v1/collections/{id}/swaps", body=body, idempotency_key=idempotency_key))

    def collections_toolkit_read(self, id: int) -> models.CollectionToolkit:
        """Show the toolkit of a collection."""
        return cast("models.CollectionToolkit", self._call("GET", f"/api/v1/collections/{id}/toolkit"))

    def collections_toolkit_set(self, id: int, body: models.CollectionToolkitChangeRequest, *, idempotency_key: str | None = None) -> models.CollectionToolkit:
        """Choose the toolkit of a collection, or none. It grants nothing: grants decide about each call, and deny
        wins."""
        return cast("models.CollectionToolkit", self._call("PUT", f"/api/v1/collections/{id}/toolkit", body=body, idempotency_key=idempotency_key))

    def conversations_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedConversationList:
        """List conversations, newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedConversationList", self._call("GET", "/api/v1/conversations", query={"cursor": cursor, "page_size": page_size}))

    def conversations_list_all(self, *, page_size: int | None = None) -> Iterator[models.Conversation]:
        """Go through all rows of ``conversations_list``, page by page."""
        return self._every(lambda cursor: self.conversations_list(page_size=page_size, cursor=cursor))

    def conversations_create(self, body: models.ConversationInputRequest | None = None, *, idempotency_key: str | None = None) -> models.Conversation:
        """Create an empty conversation."""
        return cast("models.Conversation", self._call("POST", "/api/v1/conversations", body=body or {}, idempotency_key=idempotency_key))

    def conversations_get(self, id: int) -> models.Conversation:
        """Return a conversation."""
        return cast("models.Conversation", self._call("GET", f"/api/v1/conversations/{id}"))

    def conversations_update(self, id: int, body: models.PatchedConversationUpdateRequest | None = None, *, idempotency_key: str | None = None) -> models.Conversation:
        """Change the title or the collections that are searched."""
        return cast("models.Conversation", self._call("PATCH", f"/api/v1/conversations/{id}", body=body or {}, idempotency_key=idempotency_key))

    def conversations_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Delete a conversation with its turns and runs."""
        self._call("DELETE", f"/api/v1/conversations/{id}", idempotency_key=idempotency_key)

    def attachments_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedAttachmentList:
        """List the files of a conversation, newest first. cursor: The pagination cursor value. page_size: Number of
        results to return per page."""
        return cast("models.PaginatedAttachmentList", self._call("GET", f"/api/v1/conversations/{id}/attachments", query={"cursor": cursor, "page_size": page_size}))

    def attachments_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.Attachment]:
        """Go through all rows of ``attachments_list``, page by page."""
        return self._every(lambda cursor: self.attachments_list(id, page_size=page_size, cursor=cursor))

    def attachments_add(self, id: int, body: models.AttachmentInputRequest, *, idempotency_key: str | None = None) -> models.Attachment:
        """Attach a file, and name its id in `attachments` of the next question. It is private to you, and read at
        once."""
        return cast("models.Attachment", self._call("POST", f"/api/v1/conversations/{id}/attachments", form=cast("dict[str, Any]", body), idempotency_key=idempotency_key))

    def attachments_get(self, attachment_pk: int, id: int) -> models.Attachment:
        """Return a file with how far its reading is."""
        return cast("models.Attachment", self._call("GET", f"/api/v1/conversations/{id}/attachments/{attachment_pk}"))

    def attachments_remove(self, attachment_pk: int, id: int, *, idempotency_key: str | None = None) -> None:
        """Take back a file that went with no question yet."""
        self._call("DELETE", f"/api/v1/conversations/{id}/attachments/{attachment_pk}", idempotency_key=idempotency_key)

    def attachments_retry(self, attachment_pk: int, id: int, *, idempotency_key: str | None = None) -> models.Attachment:
        """Read a file again that could not be read."""
        return cast("models.Attachment", self._call("POST", f"/api/v1/conversations/{id}/attachments/{attachment_pk}/retry", idempotency_key=idempotency_key))

    def conversations_draft(self, id: int, body: models.DraftInputRequest, *, idempotency_key: str | None = None) -> None:
        """Keep what is typed and not sent; sending it as a question forgets it."""
        self._call("PUT", f"/api/v1/conversations/{id}/draft", body=body, idempotency_key=idempotency_key)

    def conversations_export(self, id: int, *, form: Literal['json', 'markdown'] | None = None) -> models.ConversationExport:
        """Export a conversation: all branches as JSON, or the one that is shown as Markdown with its sources. form:
        * `json` - json * `markdown` - markdown."""
        return cast("models.ConversationExport", self._call("GET", f"/api/v1/conversations/{id}/export", query={"form": form}))

    def queue_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedQueuedQuestionList:
        """List the questions that wait, the last one first; they are asked oldest first. `turns_create` adds to
        them. cursor: The pagination cursor value. page_size: Number of results to return per page."""
        return cast("models.PaginatedQueuedQuestionList", self._call("GET", f"/api/v1/conversations/{id}/queue", query={"cursor": cursor, "page_size": page_size}))

    def queue_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.QueuedQuestion]:
        """Go through all rows of ``queue_list``, page by page."""
        return self._every(lambda cursor: self.queue_list(id, page_size=page_size, cursor=cursor))

    def queue_update(self, id: int, queued_pk: int, body: models.PatchedQueuedUpdateRequest | None = None, *, idempotency_key: str | None = None) -> models.QueuedQuestion:
        """Change a question that waits."""
        return cast("models.QueuedQuestion", self._call("PATCH", f"/api/v1/conversations/{id}/queue/{queued_pk}", body=body or {}, idempotency_key=idempotency_key))

    def queue_remove(self, id: int, queued_pk: int, *, idempotency_key: str | None = None) -> None:
        """Take back a question that waits."""
        self._call("DELETE", f"/api/v1/conversations/{id}/queue/{queued_pk}", idempotency_key=idempotency_key)

    def shares_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedShareList:
        """List the links that work, newest first, with who has opened them. cursor: The pagination cursor value.
        page_size: Number of results to return per page."""
        return cast("models.PaginatedShareList", self._call("GET", f"/api/v1/conversations/{id}/shares", query={"cursor": cursor, "page_size": page_size}))

    def shares_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.Share]:
        """Go through all rows of ``shares_list``, page by page."""
        return self._every(lambda cursor: self.shares_list(id, page_size=page_size, cursor=cursor))

    def shares_create(self, id: int, *, idempotency_key: str | None = None) -> models.ShareMade:
        """Make a link to what the branch that is shown says now; members of the workspace can open it."""
        return cast("models.ShareMade", self._call("POST", f"/api/v1/conversations/{id}/shares", idempotency_key=idempotency_key))

    def shares_revoke(self, id: int, share_pk: int, *, idempotency_key: str | None = None) -> None:
        """Make a link work no more."""
        self._call("DELETE", f"/api/v1/conversations/{id}/shares/{share_pk}", idempotency_key=idempotency_key)

    def turns_list(self, id: int, *, branches: Literal['all', 'shown'] | None = None, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedTurnList:
        """List the turns of the branch that is shown, or of all, newest first. branches: `shown` (the default): the
        branch that ends with the conversation's `head_id`; `all`: every turn, a tree by `parent_id`. cursor: The
        pagination cursor value. page_size: Number of results to return per page."""
        return cast("models.PaginatedTurnList", self._call("GET", f"/api/v1/conversations/{id}/turns", query={"branches": branches, "cursor": cursor, "page_size": page_size}))

    def turns_list_all(self, id: int, *, branches: Literal['all', 'shown'] | None = None, page_size: int | None = None) -> Iterator[models.Turn]:
        """Go through all rows of ``turns_list``, page by page."""
        return self._every(lambda cursor: self.turns_list(id, branches=branches, page_size=page_size, cursor=cursor))

    def turns_create(self, id: int, body: models.AskInputRequest, *, idempotency_key: str | None = None) -> models.Turn | models.QueuedQuestion:
        """Ask a question; the answer is written in the background, see /runs/{id}/events. Without money for it:
        402."""
        return cast("models.Turn | models.QueuedQuestion", self._call("POST", f"/api/v1/conversations/{id}/turns", body=body, idempotency_key=idempotency_key))

    def turns_get(self, id: int, turn_pk: int) -> models.Turn:
        """Return a turn."""
        return cast("models.Turn", self._call("GET", f"/api/v1/conversations/{id}/turns/{turn_pk}"))

    def turns_choose(self, id: int, turn_pk: int, *, idempotency_key: str | None = None) -> models.Conversation:
        """Show the newest branch that goes through a turn; the next question follows its end."""
        return cast("models.Conversation", self._call("POST", f"/api/v1/conversations/{id}/turns/{turn_pk}/choose", idempotency_key=idempotency_key))

    def turns_continue(self, id: int, turn_pk: int, body: models.AgainInputRequest | None = None, *, idempotency_key: str | None = None) -> models.Turn:
        """Have an answer that was stopped, or met a limit, go on in a turn that follows it."""
        return cast("models.Turn", self._call("POST", f"/api/v1/conversations/{id}/turns/{turn_pk}/continue", body=body or {}, idempotency_key=idempotency_key))

    def turns_edit(self, id: int, turn_pk: int, body: models.TurnInputRequest, *, idempotency_key: str | None = None) -> models.Turn:
        """Ask a question in other words, in a new branch beside the turn; the turn stays as it was."""
        return cast("models.Turn", self._call("POST", f"/api/v1/conversations/{id}/turns/{turn_pk}/edit", body=body, idempotency_key=idempotency_key))

    def feedback_give(self, id: int, turn_pk: int, body: models.FeedbackInputRequest, *, idempotency_key: str | None = None) -> models.Feedback:
        """Say what one thinks of an answer; it replaces what was said before. Admins of the workspace can read
        it."""
        return cast("models.Feedback", self._call("PUT", f"/api/v1/conversations/{id}/turns/{turn_pk}/feedback", body=body, idempotency_key=idempotency_key))

    def feedback_withdraw(self, id: int, turn_pk: int, *, idempotency_key: str | None = None) -> None:
        """Take back what one has said about an answer."""
        self._call("DELETE", f"/api/v1/conversations/{id}/turns/{turn_pk}/feedback", idempotency_key=idempotency_key)

    def turns_fork(self, id: int, turn_pk: int, *, idempotency_key: str | None = None) -> models.Conversation:
        """Begin another conversation with a copy of the branch up to and with a turn."""
        return cast("models.Conversation", self._call("POST", f"/api/v1/conversations/{id}/turns/{turn_pk}/fork", idempotency_key=idempotency_key))

    def turns_regenerate(self, id: int, turn_pk: int, body: models.AgainInputRequest | None = None, *, idempotency_key: str | None = None) -> models.Turn:
        """Answer a question once more, in a new branch beside the turn; the turn stays as it was."""
        return cast("models.Turn", self._call("POST", f"/api/v1/conversations/{id}/turns/{turn_pk}/regenerate", body=body or {}, idempotency_key=idempotency_key))

    def turns_retry(self, id: int, turn_pk: int, body: models.RetryInputRequest | None = None, *, idempotency_key: str | None = None) -> models.Turn:
        """Answer the last question of a branch once more in place, after its answer failed or was stopped."""
        return cast("models.Turn", self._call("POST", f"/api/v1/conversations/{id}/turns/{turn_pk}/retry", body=body or {}, idempotency_key=idempotency_key))

    def conversations_rules(self) -> models.ConversationRules:
        """Tell how long conversations are kept, and whether a model names them."""
        return cast("models.ConversationRules", self._call("GET", "/api/v1/conversations/rules"))

    def conversations_rules_set(self, body: models.ConversationRulesInputRequest, *, idempotency_key: str | None = None) -> models.ConversationRules:
        """Say so. What a rule deletes is gone for good: look at `conversations_rules_preview` first."""
        return cast("models.ConversationRules", self._call("PUT", "/api/v1/conversations/rules", body=body, idempotency_key=idempotency_key))

    def conversations_rules_preview(self, *, keep_days: int | None = None) -> models.RulesPreview:
        """Tell what a rule would delete now; nothing is changed. keep_days: The rule to try; left out: the server's
        default."""
        return cast("models.RulesPreview", self._call("GET", "/api/v1/conversations/rules/preview", query={"keep_days": keep_days}))

    def conversations_search(self, *, q: str) -> models.PaginatedFoundConversationList:
        """Search one's own conversations: titles, questions and answers. The 30 last used are given. q: Words; each
        finds longer words too that begin with it."""
        return cast("models.PaginatedFoundConversationList", self._call("GET", "/api/v1/conversations/search", query={"q": q}))

    def dataset_checks_get(self, id: int) -> models.DatasetCheck:
        """Return a check with what it found."""
        return cast("models.DatasetCheck", self._call("GET", f"/api/v1/dataset-checks/{id}"))

    def dataset_checks_undo(self, id: int, *, idempotency_key: str | None = None) -> models.DatasetCheck:
        """Take rows back to the splits from which a division has moved them; those that were moved since stay."""
        return cast("models.DatasetCheck", self._call("POST", f"/api/v1/dataset-checks/{id}/undo", idempotency_key=idempotency_key))

    def dataset_exports_get(self, id: int) -> models.DatasetExport:
        """Return an export with what its validator says."""
        return cast("models.DatasetExport", self._call("GET", f"/api/v1/dataset-exports/{id}"))

    def dataset_exports_accept(self, id: int, body: models.DatasetFindingAcceptRequest, *, idempotency_key: str | None = None) -> models.DatasetExport:
        """Let findings of a blocked export pass, for this and later exports; then start it again."""
        return cast("models.DatasetExport", self._call("POST", f"/api/v1/dataset-exports/{id}/accept", body=body, idempotency_key=idempotency_key))

    def dataset_exports_file(self, id: int) -> bytes:
        """Return the file of an export that has completed."""
        return self._bytes(f"/api/v1/dataset-exports/{id}/file")

    def dataset_imports_get(self, id: int) -> models.DatasetImport:
        """Return an import with the first rows that could not be read."""
        return cast("models.DatasetImport", self._call("GET", f"/api/v1/dataset-imports/{id}"))

    def dataset_imports_errors(self, id: int) -> bytes:
        """Return the file of all rows that could not be read, one JSON object a line."""
        return self._bytes(f"/api/v1/dataset-imports/{id}/errors")

    def datasets_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedDatasetList:
        """List datasets, the newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedDatasetList", self._call("GET", "/api/v1/datasets", query={"cursor": cursor, "page_size": page_size}))

    def datasets_list_all(self, *, page_size: int | None = None) -> Iterator[models.Dataset]:
        """Go through all rows of ``datasets_list``, page by page."""
        return self._every(lambda cursor: self.datasets_list(page_size=page_size, cursor=cursor))

    def datasets_create(self, body: models.DatasetCreateRequest, *, idempotency_key: str | None = None) -> models.Dataset:
        """Create an empty dataset."""
        return cast("models.Dataset", self._call("POST", "/api/v1/datasets", body=body, idempotency_key=idempotency_key))

    def datasets_get(self, id: int) -> models.Dataset:
        """Return a dataset with its counts."""
        return cast("models.Dataset", self._call("GET", f"/api/v1/datasets/{id}"))

    def datasets_update(self, id: int, body: models.PatchedDatasetUpdateRequest | None = None, *, idempotency_key: str | None = None) -> models.Dataset:
        """Change name, description or the two-person rule."""
        return cast("models.Dataset", self._call("PATCH", f"/api/v1/datasets/{id}", body=body or {}, idempotency_key=idempotency_key))

    def datasets_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Delete a dataset with its rows, versions and jobs."""
        self._call("DELETE", f"/api/v1/datasets/{id}", idempotency_key=idempotency_key)

    def dataset_checks_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedDatasetCheckList:
        """List a dataset's checks, the newest first. cursor: The pagination cursor value. page_size: Number of
        results to return per page."""
        return cast("models.PaginatedDatasetCheckList", self._call("GET", f"/api/v1/datasets/{id}/checks", query={"cursor": cursor, "page_size": page_size}))

    def dataset_checks_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.DatasetCheck]:
        """Go through all rows of ``dataset_checks_list``, page by page."""
        return self._every(lambda cursor: self.dataset_checks_list(id, page_size=page_size, cursor=cursor))

    def dataset_checks_start(self, id: int, body: models.DatasetCheckStartRequest, *, idempotency_key: str | None = None) -> models.DatasetCheck:
        """Look for duplicates, contamination or personal data, or divide the rows into splits by document."""
        return cast("models.DatasetCheck", self._call("POST", f"/api/v1/datasets/{id}/checks", body=body, idempotency_key=idempotency_key))

    def dataset_exports_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedDatasetExportList:
        """List a dataset's exports, the newest first. cursor: The pagination cursor value. page_size: Number of
        results to return per page."""
        return cast("models.PaginatedDatasetExportList", self._call("GET", f"/api/v1/datasets/{id}/exports", query={"cursor": cursor, "page_size": page_size}))

    def dataset_exports_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.DatasetExport]:
        """Go through all rows of ``dataset_exports_list``, page by page."""
        return self._every(lambda cursor: self.dataset_exports_list(id, page_size=page_size, cursor=cursor))

    def dataset_exports_start(self, id: int, body: models.DatasetExportStartRequest, *, idempotency_key: str | None = None) -> models.DatasetExport:
        """Write a version as a file, read it back and compare. Ask for the export until it has ended."""
        return cast("models.DatasetExport", self._call("POST", f"/api/v1/datasets/{id}/exports", body=body, idempotency_key=idempotency_key))

    def generations_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedGenerationList:
        """List generation jobs, the newest first. cursor: The pagination cursor value. page_size: Number of results
        to return per page."""
        return cast("models.PaginatedGenerationList", self._call("GET", f"/api/v1/datasets/{id}/generations", query={"cursor": cursor, "page_size": page_size}))

    def generations_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.Generation]:
        """Go through all rows of ``generations_list``, page by page."""
        return self._every(lambda cursor: self.generations_list(id, page_size=page_size, cursor=cursor))

    def generations_start(self, id: int, body: models.GenerationStartRequest, *, idempotency_key: str | None = None) -> models.Generation:
        """Start making rows from collections."""
        return cast("models.Generation", self._call("POST", f"/api/v1/datasets/{id}/generations", body=body, idempotency_key=idempotency_key))

    def dataset_imports_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedDatasetImportList:
        """List a dataset's imports, the newest first. cursor: The pagination cursor value. page_size: Number of
        results to return per page."""
        return cast("models.PaginatedDatasetImportList", self._call("GET", f"/api/v1/datasets/{id}/imports", query={"cursor": cursor, "page_size": page_size}))

    def dataset_imports_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.DatasetImport]:
        """Go through all rows of ``dataset_imports_list``, page by page."""
        return self._every(lambda cursor: self.dataset_imports_list(id, page_size=page_size, cursor=cursor))

    def dataset_imports_start(self, id: int, body: models.DatasetImportStartRequest, *, idempotency_key: str | None = None) -> models.DatasetImport:
        """Upload a file of rows; a trial reads it and adds nothing."""
        return cast("models.DatasetImport", self._call("POST", f"/api/v1/datasets/{id}/imports", form=cast("dict[str, Any]", body), idempotency_key=idempotency_key))

    def dataset_rows_list(self, id: int, *, cursor: str | None = None, difficulty: Literal['easy', 'hard', 'medium'] | None = None, job: int | None = None, page_size: int | None = None, source: str | None = None, split: Literal['test', 'train', 'validation'] | None = None, status: Literal['approved', 'draft', 'rejected', 'review'] | None = None, tag: str | None = None, text: str | None = None, type: Literal['adversarial', 'code', 'comparison', 'contradictory', 'factual', 'how_to', 'injected', 'multi_hop', 'multi_turn', 'unanswerable'] | None = None) -> models.PaginatedDatasetRowList:
        """List a dataset's rows, the newest first. cursor: The pagination cursor value. job: Id of the generation
        that made them. page_size: Number of results to return per page."""
        return cast("models.PaginatedDatasetRowList", self._call("GET", f"/api/v1/datasets/{id}/rows", query={"cursor": cursor, "difficulty": difficulty, "job": job, "page_size": page_size, "source": source, "split": split, "status": status, "tag": tag, "text": text, "type": type}))

    def dataset_rows_list_all(self, id: int, *, difficulty: Literal['easy', 'hard', 'medium'] | None = None, job: int | None = None, page_size: int | None = None, source: str | None = None, split: Literal['test', 'train', 'validation'] | None = None, status: Literal['approved', 'draft', 'rejected', 'review'] | None = None, tag: str | None = None, text: str | None = None, type: Literal['adversarial', 'code', 'comparison', 'contradictory', 'factual', 'how_to', 'injected', 'multi_hop', 'multi_turn', 'unanswerable'] | None = None) -> Iterator[models.DatasetRow]:
        """Go through all rows of ``dataset_rows_list``, page by page."""
        return self._every(lambda cursor: self.dataset_rows_list(id, difficulty=difficulty, job=job, page_size=page_size, source=source, split=split, status=status, tag=tag, text=text, type=type, cursor=cursor))

    def dataset_rows_get(self, id: int, row_pk: int) -> models.DatasetRow:
        """Return a row with its steps, sources and scores."""
        return cast("models.DatasetRow", self._call("GET", f"/api/v1/datasets/{id}/rows/{row_pk}"))

    def dataset_rows_update(self, id: int, row_pk: int, body: models.PatchedDatasetRowUpdateRequest | None = None, *, idempotency_key: str | None = None) -> models.DatasetRow:
        """Change a row; an approved one goes back to review when more than its split changes."""
        return cast("models.DatasetRow", self._call("PATCH", f"/api/v1/datasets/{id}/rows/{row_pk}", body=body or {}, idempotency_key=idempotency_key))

    def dataset_rows_review(self, id: int, row_pk: int, body: models.DatasetRowReviewRequest, *, idempotency_key: str | None = None) -> models.DatasetRow:
        """Approve or reject a row as you saw it."""
        return cast("models.DatasetRow", self._call("POST", f"/api/v1/datasets/{id}/rows/{row_pk}/review", body=body, idempotency_key=idempotency_key))

    def dataset_rows_from_conversation(self, id: int, body: models.DatasetRowsFromConversationRequest, *, idempotency_key: str | None = None) -> models.DatasetCollected:
        """Add answers of one of your conversations as rows to review, redacted; a trial shows them and adds
        nothing."""
        return cast("models.DatasetCollected", self._call("POST", f"/api/v1/datasets/{id}/rows/from-conversation", body=body, idempotency_key=idempotency_key))

    def dataset_rows_from_feedback(self, id: int, body: models.DatasetRowsFromFeedbackRequest, *, idempotency_key: str | None = None) -> models.DatasetCollected:
        """Add judged answers as rows to review, redacted; a trial shows them and adds nothing."""
        return cast("models.DatasetCollected", self._call("POST", f"/api/v1/datasets/{id}/rows/from-feedback", body=body, idempotency_key=idempotency_key))

    def dataset_rows_settle(self, id: int, body: models.DatasetRowsSettleRequest, *, idempotency_key: str | None = None) -> models.DatasetRowsSettled:
        """Reject rows that a check has found, move them to training, or hide what was found in them. All or
        none."""
        return cast("models.DatasetRowsSettled", self._call("POST", f"/api/v1/datasets/{id}/rows/settle", body=body, idempotency_key=idempotency_key))

    def dataset_rows_split(self, id: int, body: models.DatasetSplitAssignRequest, *, idempotency_key: str | None = None) -> models.DatasetCheck:
        """Put rows into a split, with all that share a document with them. Ask for the check until it has ended."""
        return cast("models.DatasetCheck", self._call("POST", f"/api/v1/datasets/{id}/rows/split", body=body, idempotency_key=idempotency_key))

    def dataset_sources_list(self, id: int, *, after: str | None = None) -> models.DatasetSources:
        """List the documents that a dataset's rows quote, by name, each with its licences and its rows. after: Only
        documents whose name comes after this one."""
        return cast("models.DatasetSources", self._call("GET", f"/api/v1/datasets/{id}/sources", query={"after": after}))

    def dataset_sources_license(self, id: int, body: models.PatchedDatasetSourceLicenseRequest | None = None, *, idempotency_key: str | None = None) -> models.DatasetSourceLicensed:
        """Set the licence of a document in every row that quotes it; exports carry it on."""
        return cast("models.DatasetSourceLicensed", self._call("PATCH", f"/api/v1/datasets/{id}/sources", body=body or {}, idempotency_key=idempotency_key))

    def dataset_versions_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedDatasetVersionList:
        """List versions, the newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedDatasetVersionList", self._call("GET", f"/api/v1/datasets/{id}/versions", query={"cursor": cursor, "page_size": page_size}))

    def dataset_versions_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.DatasetVersion]:
        """Go through all rows of ``dataset_versions_list``, page by page."""
        return self._every(lambda cursor: self.dataset_versions_list(id, page_size=page_size, cursor=cursor))

    def dataset_versions_create(self, id: int, body: models.DatasetVersionCreateRequest | None = None, *, idempotency_key: str | None = None) -> models.DatasetVersion:
        """Freeze rows into the next version, which never changes."""
        return cast("models.DatasetVersion", self._call("POST", f"/api/v1/datasets/{id}/versions", body=body or {}, idempotency_key=idempotency_key))

    def dataset_versions_get(self, id: int, number: int) -> models.DatasetVersion:
        """Return a version's facts."""
        return cast("models.DatasetVersion", self._call("GET", f"/api/v1/datasets/{id}/versions/{number}"))

    def dataset_versions_diff(self, id: int, newer: int, older: int, *, after: int | None = None, kind: Literal['added', 'changed', 'removed'] | None = None) -> models.DatasetVersionDiff:
        """Return how many rows came, went and changed, and a page of one kind of change. after: Only rows with a
        higher number. kind: Which changes to list."""
        return cast("models.DatasetVersionDiff", self._call("GET", f"/api/v1/datasets/{id}/versions/{older}/{newer}", query={"after": after, "kind": kind}))

    def document_types_get(self) -> models.DocumentTypeRules:
        """Return the rules that give documents their types, null when there are none."""
        return cast("models.DocumentTypeRules", self._call("GET", "/api/v1/document-types"))

    def document_types_set(self, body: models.DocumentTypeRulesRequest, *, idempotency_key: str | None = None) -> models.DocumentTypeRules:
        """Replace the rules; documents that are here get their types in the background. Null removes the rules."""
        return cast("models.DocumentTypeRules", self._call("PUT", "/api/v1/document-types", body=body, idempotency_key=idempotency_key))

    def document_types_example(self) -> models.DocumentTypeRules:
        """Return the rules for trade compliance, as an example of what rules can say."""
        return cast("models.DocumentTypeRules", self._call("GET", "/api/v1/document-types/example"))

    def documents_get(self, id: int) -> models.DocumentDetail:
        """Return a document's state and its ledger: the counts of its row against those of the tables."""
        return cast("models.DocumentDetail", self._call("GET", f"/api/v1/documents/{id}"))

    def documents_describe(self, id: int, body: models.PatchedDocumentDescribeRequest | None = None, *, idempotency_key: str | None = None) -> models.Document:
        """Set type, tags, date or the team's own metadata; a type set here no rule changes."""
        return cast("models.Document", self._call("PATCH", f"/api/v1/documents/{id}", body=body or {}, idempotency_key=idempotency_key))

    def documents_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Delete a document with its text, chunks, vectors and file."""
        self._call("DELETE", f"/api/v1/documents/{id}", idempotency_key=idempotency_key)

    def document_access_get(self, id: int) -> models.DocumentAccess:
        """Return whether a document is limited, and to which roles and members."""
        return cast("models.DocumentAccess", self._call("GET", f"/api/v1/documents/{id}/access"))

    def document_access_set(self, id: int, body: models.DocumentAccessInputRequest, *, idempotency_key: str | None = None) -> models.DocumentAccess:
        """Limit a document with all its versions to roles and members, or open it to the workspace."""
        return cast("models.DocumentAccess", self._call("PUT", f"/api/v1/documents/{id}/access", body=body, idempotency_key=idempotency_key))

    def documents_cancel(self, id: int, *, idempotency_key: str | None = None) -> models.Document:
        """Stop a document's ingestion: at once while it waits, within a second while it runs."""
        return cast("models.Document", self._call("POST", f"/api/v1/documents/{id}/cancel", idempotency_key=idempotency_key))

    def document_chunks_list(self, id: int, *, cursor: str | None = None, has_points: bool | None = None, header: str | None = None, header_match: Literal['contains', 'exact'] | None = None, is_disabled: bool | None = None, is_edited: bool | None = None, kind: list[Literal['class', 'doc', 'file', 'function', 'table']] | None = None, page: int | None = None, page_size: int | None = None, path: str | None = None, path_prefix: str | None = None, points_by: Literal['model', 'rule'] | None = None, qualified_name: str | None = None, relation: str | None = None, text: str | None = None) -> models.PaginatedChunkList:
        """List the chunks of a document, an earlier version too, in reading order. cursor: The pagination cursor
        value. header: Under a heading of this title. page_size: Number of results to return per page. path: Of the
        source file at this path. path_prefix: Of files below this folder. qualified_name: Code whose full name
        begins so. relation: With a link of this relation; `any` for any. text: With these characters, case
        aside."""
        return cast("models.PaginatedChunkList", self._call("GET", f"/api/v1/documents/{id}/chunks", query={"cursor": cursor, "has_points": has_points, "header": header, "header_match": header_match, "is_disabled": is_disabled, "is_edited": is_edited, "kind": kind, "page": page, "page_size": page_size, "path": path, "path_prefix": path_prefix, "points_by": points_by, "qualified_name": qualified_name, "relation": relation, "text": text}))

    def document_chunks_list_all(self, id: int, *, has_points: bool | None = None, header: str | None = None, header_match: Literal['contains', 'exact'] | None = None, is_disabled: bool | None = None, is_edited: bool | None = None, kind: list[Literal['class', 'doc', 'file', 'function', 'table']] | None = None, page: int | None = None, page_size: int | None = None, path: str | None = None, path_prefix: str | None = None, points_by: Literal['model', 'rule'] | None = None, qualified_name: str | None = None, relation: str | None = None, text: str | None = None) -> Iterator[models.Chunk]:
        """Go through all rows of ``document_chunks_list``, page by page."""
        return self._every(lambda cursor: self.document_chunks_list(id, has_points=has_points, header=header, header_match=header_match, is_disabled=is_disabled, is_edited=is_edited, kind=kind, page=page, page_size=page_size, path=path, path_prefix=path_prefix, points_by=points_by, qualified_name=qualified_name, relation=relation, text=text, cursor=cursor))

    def documents_move(self, id: int, body: models.DocumentMoveRequest, *, idempotency_key: str | None = None) -> models.Document:
        """Give a document with all its versions another path."""
        return cast("models.Document", self._call("POST", f"/api/v1/documents/{id}/move", body=body, idempotency_key=idempotency_key))

    def documents_reindex(self, id: int, *, idempotency_key: str | None = None) -> models.Document:
        """Read a document's original again; the version that is live answers until the new one is ready."""
        return cast("models.Document", self._call("POST", f"/api/v1/documents/{id}/reindex", idempotency_key=idempotency_key))

    def documents_restore(self, id: int, *, idempotency_key: str | None = None) -> models.Document:
        """Make an earlier version the current one: its bytes are read anew as the newest version."""
        return cast("models.Document", self._call("POST", f"/api/v1/documents/{id}/restore", idempotency_key=idempotency_key))

    def documents_retry(self, id: int, *, idempotency_key: str | None = None) -> models.Document:
        """Ingest a failed or cancelled document again, from the stage where it stopped."""
        return cast("models.Document", self._call("POST", f"/api/v1/documents/{id}/retry", idempotency_key=idempotency_key))

    def document_statistics_get(self, id: int) -> models.ChunkStatistics:
        """Return counts, sizes, kinds, links and coverage of a document's chunks."""
        return cast("models.ChunkStatistics", self._call("GET", f"/api/v1/documents/{id}/statistics"))

    def document_versions_list(self, id: int) -> models.PaginatedDocumentList:
        """List all versions at a document's path, newest first; `live_to` is null for the current one."""
        return cast("models.PaginatedDocumentList", self._call("GET", f"/api/v1/documents/{id}/versions"))

    def embeddings_create(self, body: models.EmbeddingsShapeRequest, *, idempotency_key: str | None = None) -> models.Embeddings:
        """Embed texts with one of the workspace's embedders; vectors have length 1."""
        return cast("models.Embeddings", self._call("POST", "/api/v1/embeddings", body=body, idempotency_key=idempotency_key))

    def experiments_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedExperimentOutputList:
        """List experiments, the newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedExperimentOutputList", self._call("GET", "/api/v1/experiments", query={"cursor": cursor, "page_size": page_size}))

    def experiments_list_all(self, *, page_size: int | None = None) -> Iterator[models.ExperimentOutput]:
        """Go through all rows of ``experiments_list``, page by page."""
        return self._every(lambda cursor: self.experiments_list(page_size=page_size, cursor=cursor))

    def experiments_create(self, body: models.ExperimentInputRequest, *, idempotency_key: str | None = None) -> models.ExperimentDetailOutput:
        """Start an experiment: every row of the version is asked of every arm, and the answers are scored."""
        return cast("models.ExperimentDetailOutput", self._call("POST", "/api/v1/experiments", body=body, idempotency_key=idempotency_key))

    def experiments_get(self, id: int) -> models.ExperimentDetailOutput:
        """Return an experiment with its arms and counts."""
        return cast("models.ExperimentDetailOutput", self._call("GET", f"/api/v1/experiments/{id}"))

    def experiments_act(self, id: int, body: models.StateInputRequest, *, idempotency_key: str | None = None) -> models.ExperimentDetailOutput:
        """Pause, resume or stop an experiment."""
        return cast("models.ExperimentDetailOutput", self._call("POST", f"/api/v1/experiments/{id}", body=body, idempotency_key=idempotency_key))

    def experiment_front(self, id: int) -> models.PaginatedFrontPointOutputList:
        """Return every arm's quality and cost; those on the front are beaten by none that costs no more."""
        return cast("models.PaginatedFrontPointOutputList", self._call("GET", f"/api/v1/experiments/{id}/front"))

    def experiment_judge_checks(self, id: int) -> models.PaginatedJudgeCheckOutputList:
        """List the checks with what they found; a judge that has drifted gates nothing in this experiment."""
        return cast("models.PaginatedJudgeCheckOutputList", self._call("GET", f"/api/v1/experiments/{id}/judge-checks"))

    def experiment_pairs(self, id: int) -> models.PairSummaryOutput:
        """Return wins, ties and flips of every pair of arms, and the arms' strengths. 404 where no pairs are
        judged."""
        return cast("models.PairSummaryOutput", self._call("GET", f"/api/v1/experiments/{id}/pairs"))

    def experiment_safety(self, id: int) -> models.SafetyOutput:
        """Return attack success by carrier, goal, disguise and place for each arm. 404 where no attacks are
        scored."""
        return cast("models.SafetyOutput", self._call("GET", f"/api/v1/experiments/{id}/safety"))

    def experiment_trials_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedTrialOutputList:
        """List answers with their scores, in the order of the rows. cursor: The pagination cursor value. page_size:
        Number of results to return per page."""
        return cast("models.PaginatedTrialOutputList", self._call("GET", f"/api/v1/experiments/{id}/trials", query={"cursor": cursor, "page_size": page_size}))

    def experiment_trials_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.TrialOutput]:
        """Go through all rows of ``experiment_trials_list``, page by page."""
        return self._every(lambda cursor: self.experiment_trials_list(id, page_size=page_size, cursor=cursor))

    def failure_tags_list(self) -> models.PaginatedTagUseOutputList:
        """Return the names that people of this workspace gave to failing answers."""
        return cast("models.PaginatedTagUseOutputList", self._call("GET", "/api/v1/failure-tags"))

    def feedback_list(self, *, cursor: str | None = None, page_size: int | None = None, verdict: Literal['good', 'bad', ''] | None = None) -> models.PaginatedFeedbackList:
        """List feedback with questions and answers, newest first: one's own, or the workspace's for who may read
        its audit log. cursor: The pagination cursor value. page_size: Number of results to return per page.
        verdict: * `good` - good * `bad` - bad."""
        return cast("models.PaginatedFeedbackList", self._call("GET", "/api/v1/feedback", query={"cursor": cursor, "page_size": page_size, "verdict": verdict}))

    def feedback_list_all(self, *, page_size: int | None = None, verdict: Literal['good', 'bad', ''] | None = None) -> Iterator[models.Feedback]:
        """Go through all rows of ``feedback_list``, page by page."""
        return self._every(lambda cursor: self.feedback_list(page_size=page_size, verdict=verdict, cursor=cursor))

    def generations_get(self, id: int) -> models.GenerationDetail:
        """Return how far a job is and what it has cost."""
        return cast("models.GenerationDetail", self._call("GET", f"/api/v1/generations/{id}"))

    def generations_pause(self, id: int, *, idempotency_key: str | None = None) -> models.Generation:
        """Let what is under way end and begin nothing more."""
        return cast("models.Generation", self._call("POST", f"/api/v1/generations/{id}/pause", idempotency_key=idempotency_key))

    def generations_resume(self, id: int, body: models.GenerationResumeRequest | None = None, *, idempotency_key: str | None = None) -> models.Generation:
        """Go on with a paused or failed job, with a new budget if one is given."""
        return cast("models.Generation", self._call("POST", f"/api/v1/generations/{id}/resume", body=body or {}, idempotency_key=idempotency_key))

    def generations_stop(self, id: int, *, idempotency_key: str | None = None) -> models.Generation:
        """End a job for good; its rows stay."""
        return cast("models.Generation", self._call("POST", f"/api/v1/generations/{id}/stop", idempotency_key=idempotency_key))

    def imports_get(self, id: int) -> models.ImportDetail:
        """Return an import with its counts and what was left out."""
        return cast("models.ImportDetail", self._call("GET", f"/api/v1/imports/{id}"))

    def imports_cancel(self, id: int, *, idempotency_key: str | None = None) -> models.ImportDetail:
        """Stop an import; what it brought stays."""
        return cast("models.ImportDetail", self._call("POST", f"/api/v1/imports/{id}/cancel", idempotency_key=idempotency_key))

    def imports_retry(self, id: int, *, idempotency_key: str | None = None) -> models.ImportDetail:
        """Do an import again; what is here already with the same bytes stays as it is."""
        return cast("models.ImportDetail", self._call("POST", f"/api/v1/imports/{id}/retry", idempotency_key=idempotency_key))

    def me(self) -> models.Me:
        """Tell which workspace the key or session is in, for whom it acts and what it may do."""
        return cast("models.Me", self._call("GET", "/api/v1/me"))

    def members_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedMemberList:
        """List the members, newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedMemberList", self._call("GET", "/api/v1/members", query={"cursor": cursor, "page_size": page_size}))

    def members_list_all(self, *, page_size: int | None = None) -> Iterator[models.Member]:
        """Go through all rows of ``members_list``, page by page."""
        return self._every(lambda cursor: self.members_list(page_size=page_size, cursor=cursor))

    def models_list(self) -> models.Models:
        """List what can be named as a model: the workspace itself (its default model with its documents and tools),
        its published assistants, then its models; `extractive`, the last, quotes without a language model."""
        return cast("models.Models", self._call("GET", "/api/v1/models"))

    def models_get(self, model: str) -> models.Model:
        """Return what is listed under an id."""
        return cast("models.Model", self._call("GET", f"/api/v1/models/{model}"))

    def outgoing_hosts_read(self) -> models.OutgoingHosts:
        """List the hosts that requests may go to; an empty list lets every public host be called."""
        return cast("models.OutgoingHosts", self._call("GET", "/api/v1/outgoing-hosts"))

    def outgoing_hosts_set(self, body: models.OutgoingHostsRequest, *, idempotency_key: str | None = None) -> models.OutgoingHosts:
        """Replace the list. It needs a signed-in owner: no API key can widen where it may send."""
        return cast("models.OutgoingHosts", self._call("PUT", "/api/v1/outgoing-hosts", body=body, idempotency_key=idempotency_key))

    def reads_list(self, *, chunk: int | None = None, cursor: str | None = None, document: int | None = None, page_size: int | None = None, run: int | None = None, who: int | None = None) -> models.PaginatedChunkReadList:
        """List which passages reached which answers, the newest first: one's own, or everybody's with `audit.read`.
        chunk: Id of the chunk. cursor: The pagination cursor value. document: Id of the document: who has read it?
        page_size: Number of results to return per page. run: Id of the run: what did this answer read? who: Id of
        the person: what did their answers read?"""
        return cast("models.PaginatedChunkReadList", self._call("GET", "/api/v1/reads", query={"chunk": chunk, "cursor": cursor, "document": document, "page_size": page_size, "run": run, "who": who}))

    def reads_list_all(self, *, chunk: int | None = None, document: int | None = None, page_size: int | None = None, run: int | None = None, who: int | None = None) -> Iterator[models.ChunkRead]:
        """Go through all rows of ``reads_list``, page by page."""
        return self._every(lambda cursor: self.reads_list(chunk=chunk, document=document, page_size=page_size, run=run, who=who, cursor=cursor))

    def responses_create(self, body: models.ResponseShapeRequest, *, idempotency_key: str | None = None) -> models.Response:
        """Answer an input: at once, or as a stream of typed events."""
        return cast("models.Response", self._call("POST", "/api/v1/responses", body=body, idempotency_key=idempotency_key))

    def responses_get(self, response_id: str) -> models.Response:
        """Return a response that was kept, as far as it has come."""
        return cast("models.Response", self._call("GET", f"/api/v1/responses/{response_id}"))

    def responses_delete(self, response_id: str, *, idempotency_key: str | None = None) -> models.ResponseDeletedOutput:
        """Forget a response: no later request can name it. What works on it is stopped; the run is kept as every
        run is."""
        return cast("models.ResponseDeletedOutput", self._call("DELETE", f"/api/v1/responses/{response_id}", idempotency_key=idempotency_key))

    def responses_cancel(self, response_id: str, *, idempotency_key: str | None = None) -> models.Response:
        """Stop a response and return what it has said; one that has ended stays as it is."""
        return cast("models.Response", self._call("POST", f"/api/v1/responses/{response_id}/cancel", idempotency_key=idempotency_key))

    def responses_input_items(self, response_id: str, *, after: str | None = None, limit: int | None = None, order: Literal['asc', 'desc'] | None = None) -> models.ResponseInputsOutput:
        """List the items before a response, those of the responses it follows too; of images and files their names
        only. after: Go on after this item. order: * `asc` - asc * `desc` - desc."""
        return cast("models.ResponseInputsOutput", self._call("GET", f"/api/v1/responses/{response_id}/input_items", query={"after": after, "limit": limit, "order": order}))

    def retention_read(self) -> models.Retention:
        """Show the retention rule."""
        return cast("models.Retention", self._call("GET", "/api/v1/retention"))

    def retention_set(self, body: models.RetentionChangeRequest, *, idempotency_key: str | None = None) -> models.Retention:
        """Set the rule; what it removes is gone for good."""
        return cast("models.Retention", self._call("PUT", "/api/v1/retention", body=body, idempotency_key=idempotency_key))

    def rubric_versions_agreement(self, id: int) -> models.PaginatedAgreementOutputList:
        """Return judge and people beside people among themselves, per score and judge of a rubric's version."""
        return cast("models.PaginatedAgreementOutputList", self._call("GET", f"/api/v1/rubric-versions/{id}/agreement"))

    def rubric_versions_calibrations(self, id: int) -> models.PaginatedCalibrationOutputList:
        """List the calibrations of the judges of a rubric's version, the newest first; of each score and judge the
        newest counts."""
        return cast("models.PaginatedCalibrationOutputList", self._call("GET", f"/api/v1/rubric-versions/{id}/calibrations"))

    def rubric_versions_calibrate(self, id: int, body: models.CalibrationInputRequest, *, idempotency_key: str | None = None) -> models.CalibrationOutput:
        """Calibrate a judge's score to people's as they have graded up to now."""
        return cast("models.CalibrationOutput", self._call("POST", f"/api/v1/rubric-versions/{id}/calibrations", body=body, idempotency_key=idempotency_key))

    def rubrics_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedRubricOutputList:
        """List rubrics with their versions. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedRubricOutputList", self._call("GET", "/api/v1/rubrics", query={"cursor": cursor, "page_size": page_size}))

    def rubrics_list_all(self, *, page_size: int | None = None) -> Iterator[models.RubricOutput]:
        """Go through all rows of ``rubrics_list``, page by page."""
        return self._every(lambda cursor: self.rubrics_list(page_size=page_size, cursor=cursor))

    def rubrics_create(self, body: models.RubricInputRequest, *, idempotency_key: str | None = None) -> models.RubricVersionOutput:
        """Make a rubric with its first version."""
        return cast("models.RubricVersionOutput", self._call("POST", "/api/v1/rubrics", body=body, idempotency_key=idempotency_key))

    def rubric_versions_create(self, id: int, body: models.RubricVersionInputRequest, *, idempotency_key: str | None = None) -> models.RubricVersionOutput:
        """Change a rubric by making its next version."""
        return cast("models.RubricVersionOutput", self._call("POST", f"/api/v1/rubrics/{id}/versions", body=body, idempotency_key=idempotency_key))

    def runs_get(self, id: int) -> models.Run:
        """Return a run."""
        return cast("models.Run", self._call("GET", f"/api/v1/runs/{id}"))

    def decisions_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedDecisionList:
        """List the calls a run waits for or has waited for, newest first; `pending` ones can be decided. cursor:
        The pagination cursor value. page_size: Number of results to return per page."""
        return cast("models.PaginatedDecisionList", self._call("GET", f"/api/v1/runs/{id}/decisions", query={"cursor": cursor, "page_size": page_size}))

    def decisions_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.Decision]:
        """Go through all rows of ``decisions_list``, page by page."""
        return self._every(lambda cursor: self.decisions_list(id, page_size=page_size, cursor=cursor))

    def decisions_decide(self, decision_pk: int, id: int, body: models.DecisionInputRequest, *, idempotency_key: str | None = None) -> models.Decision:
        """Approve (with other arguments, if given), reject or answer a call; after the last one the run goes on."""
        return cast("models.Decision", self._call("POST", f"/api/v1/runs/{id}/decisions/{decision_pk}", body=body, idempotency_key=idempotency_key))

    def runs_events(self, id: int, *, after: str = "") -> Iterator[Event]:
        """Stream the events of a run from the beginning, or after a position; ends with the run."""
        return self._events(f"/api/v1/runs/{id}/events", after=after)

    def runs_replay(self, id: int, body: models.ReplayInputRequest | None = None, *, idempotency_key: str | None = None) -> models.Replay:
        """Run one of your runs again with recorded outputs; no tool runs, and no model is asked unless you say
        so."""
        return cast("models.Replay", self._call("POST", f"/api/v1/runs/{id}/replay", body=body or {}, idempotency_key=idempotency_key))

    def runs_stop(self, id: int, *, idempotency_key: str | None = None) -> models.Run:
        """Ask a run to stop; what it has said so far is kept. Harmless when it has ended."""
        return cast("models.Run", self._call("POST", f"/api/v1/runs/{id}/stop", idempotency_key=idempotency_key))

    def runs_trace(self, id: int) -> models.Trace:
        """Return what was searched for and found, turn by turn, with calls, tokens, money and times."""
        return cast("models.Trace", self._call("GET", f"/api/v1/runs/{id}/trace"))

    def safety_suites_create(self, body: models.SuiteInputRequest, *, idempotency_key: str | None = None) -> models.SuiteOutput:
        """Create a dataset of planted instructions and harmless controls, with a version to ask in an
        experiment."""
        return cast("models.SuiteOutput", self._call("POST", "/api/v1/safety-suites", body=body, idempotency_key=idempotency_key))

    def sampling_rules_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedSamplingRuleOutputList:
        """List the rules by which live answers are scored. cursor: The pagination cursor value. page_size: Number
        of results to return per page."""
        return cast("models.PaginatedSamplingRuleOutputList", self._call("GET", "/api/v1/sampling-rules", query={"cursor": cursor, "page_size": page_size}))

    def sampling_rules_list_all(self, *, page_size: int | None = None) -> Iterator[models.SamplingRuleOutput]:
        """Go through all rows of ``sampling_rules_list``, page by page."""
        return self._every(lambda cursor: self.sampling_rules_list(page_size=page_size, cursor=cursor))

    def sampling_rules_create(self, body: models.SamplingRuleInputRequest, *, idempotency_key: str | None = None) -> models.SamplingRuleOutput:
        """Have live answers scored from now on."""
        return cast("models.SamplingRuleOutput", self._call("POST", "/api/v1/sampling-rules", body=body, idempotency_key=idempotency_key))

    def sampling_rules_get(self, id: int) -> models.SamplingRuleOutput:
        """Return a rule."""
        return cast("models.SamplingRuleOutput", self._call("GET", f"/api/v1/sampling-rules/{id}"))

    def sampling_rules_act(self, id: int, body: models.SamplingStateInputRequest, *, idempotency_key: str | None = None) -> models.SamplingRuleOutput:
        """Pause or resume a rule."""
        return cast("models.SamplingRuleOutput", self._call("POST", f"/api/v1/sampling-rules/{id}", body=body, idempotency_key=idempotency_key))

    def sampling_rules_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Delete a rule with its samples."""
        self._call("DELETE", f"/api/v1/sampling-rules/{id}", idempotency_key=idempotency_key)

    def sampling_rules_trend(self, id: int) -> models.PaginatedTrendOutputList:
        """Return the daily means of a rule's scores over the last 30 days."""
        return cast("models.PaginatedTrendOutputList", self._call("GET", f"/api/v1/sampling-rules/{id}/trend"))

    def search(self, body: models.SearchRequest, *, idempotency_key: str | None = None) -> models.SearchResult:
        """Find passages by meaning, by words and by exact codes, with the rank of each."""
        return cast("models.SearchResult", self._call("POST", "/api/v1/search", body=body, idempotency_key=idempotency_key))

    def search_cases_get(self, id: int) -> models.SearchCase:
        """Return a saved question."""
        return cast("models.SearchCase", self._call("GET", f"/api/v1/search-cases/{id}"))

    def search_cases_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Delete a saved question."""
        self._call("DELETE", f"/api/v1/search-cases/{id}", idempotency_key=idempotency_key)

    def shares_read(self, key: str) -> models.SharedConversation:
        """Read a shared conversation; of each source, what you may see now."""
        return cast("models.SharedConversation", self._call("GET", f"/api/v1/shares/{key}"))

    def snapshots_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Forget the name of a moment; documents and versions stay."""
        self._call("DELETE", f"/api/v1/snapshots/{id}", idempotency_key=idempotency_key)

    def swaps_get(self, id: int) -> models.SpaceSwap:
        """Return how far it is and how both models compare."""
        return cast("models.SpaceSwap", self._call("GET", f"/api/v1/swaps/{id}"))

    def swaps_step(self, id: int, body: models.SpaceSwapStepRequest, *, idempotency_key: str | None = None) -> models.SpaceSwap:
        """Switch to the new vectors, undo that, drop the old ones, cancel, or retry after a failure."""
        return cast("models.SpaceSwap", self._call("POST", f"/api/v1/swaps/{id}", body=body, idempotency_key=idempotency_key))

    def tool_calls_list(self, *, cursor: str | None = None, decision: Literal['allow', 'ask', 'deny'] | None = None, page_size: int | None = None, path: Literal['chat', 'code', 'job', 'mcp', 'rest'] | None = None, run: int | None = None, since: str | None = None, status: Literal['denied', 'failed', 'running', 'stopped', 'succeeded', 'unknown', 'waiting'] | None = None, text: str | None = None, tool: str | None = None, until: str | None = None, who: int | None = None) -> models.PaginatedLoggedCallList:
        """List tool calls, the newest first: one's own, or everybody's with the right `audit.read`. cursor: The
        pagination cursor value. page_size: Number of results to return per page. path: How the call was made. run:
        Id of the run. since: The first day. text: Occurs in name, arguments, reason, error or result. tool: The
        tool's whole name. until: The last day. who: Id of the person whose run it was."""
        return cast("models.PaginatedLoggedCallList", self._call("GET", "/api/v1/tool-calls", query={"cursor": cursor, "decision": decision, "page_size": page_size, "path": path, "run": run, "since": since, "status": status, "text": text, "tool": tool, "until": until, "who": who}))

    def tool_calls_list_all(self, *, decision: Literal['allow', 'ask', 'deny'] | None = None, page_size: int | None = None, path: Literal['chat', 'code', 'job', 'mcp', 'rest'] | None = None, run: int | None = None, since: str | None = None, status: Literal['denied', 'failed', 'running', 'stopped', 'succeeded', 'unknown', 'waiting'] | None = None, text: str | None = None, tool: str | None = None, until: str | None = None, who: int | None = None) -> Iterator[models.LoggedCall]:
        """Go through all rows of ``tool_calls_list``, page by page."""
        return self._every(lambda cursor: self.tool_calls_list(decision=decision, page_size=page_size, path=path, run=run, since=since, status=status, text=text, tool=tool, until=until, who=who, cursor=cursor))

    def tool_calls_read(self, id: int) -> models.LoggedCallDetail:
        """Show one call with the beginning of its result."""
        return cast("models.LoggedCallDetail", self._call("GET", f"/api/v1/tool-calls/{id}"))

    def tool_calls_replay(self, id: int, *, idempotency_key: str | None = None) -> models.Replay:
        """Hold a recorded call against today's tool and rules; it is not run."""
        return cast("models.Replay", self._call("POST", f"/api/v1/tool-calls/{id}/replay", idempotency_key=idempotency_key))

    def tool_calls_export(self, *, decision: Literal['allow', 'ask', 'deny'] | None = None, form: Literal['csv', 'jsonl'] | None = None, path: Literal['chat', 'code', 'job', 'mcp', 'rest'] | None = None, run: int | None = None, since: str | None = None, status: Literal['denied', 'failed', 'running', 'stopped', 'succeeded', 'unknown', 'waiting'] | None = None, text: str | None = None, tool: str | None = None, until: str | None = None, who: int | None = None) -> bytes:
        """Download the calls that the filters leave, as CSV or as JSON lines. form: `csv` if not given. path: How
        the call was made. run: Id of the run. since: The first day. text: Occurs in name, arguments, reason, error
        or result. tool: The tool's whole name. until: The last day. who: Id of the person whose run it was."""
        return self._bytes("/api/v1/tool-calls/file", query={"decision": decision, "form": form, "path": path, "run": run, "since": since, "status": status, "text": text, "tool": tool, "until": until, "who": who})

    def tool_entries_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedToolEntryList:
        """List what the workspace states about single tools; a tool without an entry is as its code or source says.
        cursor: The pagination cursor value. page_size: Number of results to return per page."""
        return cast("models.PaginatedToolEntryList", self._call("GET", "/api/v1/tool-entries", query={"cursor": cursor, "page_size": page_size}))

    def tool_entries_list_all(self, *, page_size: int | None = None) -> Iterator[models.ToolEntry]:
        """Go through all rows of ``tool_entries_list``, page by page."""
        return self._every(lambda cursor: self.tool_entries_list(page_size=page_size, cursor=cursor))

    def tool_entries_set(self, body: models.ToolEntryInputRequest, *, idempotency_key: str | None = None) -> models.ToolEntry:
        """State something about a tool; fields not given stay as they are."""
        return cast("models.ToolEntry", self._call("POST", "/api/v1/tool-entries", body=body, idempotency_key=idempotency_key))

    def tool_entries_read(self, id: int) -> models.ToolEntry:
        """Return an entry."""
        return cast("models.ToolEntry", self._call("GET", f"/api/v1/tool-entries/{id}"))

    def tool_entries_update(self, id: int, body: models.PatchedToolEntryChangeRequest | None = None, *, idempotency_key: str | None = None) -> models.ToolEntry:
        """Change an entry; fields not given stay as they are."""
        return cast("models.ToolEntry", self._call("PATCH", f"/api/v1/tool-entries/{id}", body=body or {}, idempotency_key=idempotency_key))

    def tool_entries_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Forget what was stated about a tool."""
        self._call("DELETE", f"/api/v1/tool-entries/{id}", idempotency_key=idempotency_key)

    def tool_grants_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedToolGrantList:
        """List who may call what, the newest first. Deny wins, then ask, then allow; what is not granted is denied.
        cursor: The pagination cursor value. page_size: Number of results to return per page."""
        return cast("models.PaginatedToolGrantList", self._call("GET", "/api/v1/tool-grants", query={"cursor": cursor, "page_size": page_size}))

    def tool_grants_list_all(self, *, page_size: int | None = None) -> Iterator[models.ToolGrant]:
        """Go through all rows of ``tool_grants_list``, page by page."""
        return self._every(lambda cursor: self.tool_grants_list(page_size=page_size, cursor=cursor))

    def tool_grants_create(self, body: models.ToolGrantInputRequest, *, idempotency_key: str | None = None) -> models.ToolGrant:
        """Add a grant."""
        return cast("models.ToolGrant", self._call("POST", "/api/v1/tool-grants", body=body, idempotency_key=idempotency_key))

    def tool_grants_read(self, id: int) -> models.ToolGrant:
        """Return a grant."""
        return cast("models.ToolGrant", self._call("GET", f"/api/v1/tool-grants/{id}"))

    def tool_grants_replace(self, id: int, body: models.ToolGrantInputRequest, *, idempotency_key: str | None = None) -> models.ToolGrant:
        """Put another grant in its place, in one step; the answer's id is a new one, since grants are never
        changed."""
        return cast("models.ToolGrant", self._call("PUT", f"/api/v1/tool-grants/{id}", body=body, idempotency_key=idempotency_key))

    def tool_grants_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Take a grant back."""
        self._call("DELETE", f"/api/v1/tool-grants/{id}", idempotency_key=idempotency_key)

    def tool_limits_list(self) -> models.PaginatedToolLimitList:
        """List the limits with what is used of each."""
        return cast("models.PaginatedToolLimitList", self._call("GET", "/api/v1/tool-limits"))

    def tool_limits_set(self, body: models.ToolLimitInputRequest, *, idempotency_key: str | None = None) -> models.ToolLimit:
        """Set a limit, or another number for the one of the same caller, tools and period."""
        return cast("models.ToolLimit", self._call("POST", "/api/v1/tool-limits", body=body, idempotency_key=idempotency_key))

    def tool_limits_read(self, id: int) -> models.ToolLimit:
        """Show a limit with what is used of it."""
        return cast("models.ToolLimit", self._call("GET", f"/api/v1/tool-limits/{id}"))

    def tool_limits_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Remove a limit with what was counted."""
        self._call("DELETE", f"/api/v1/tool-limits/{id}", idempotency_key=idempotency_key)

    def tool_sources_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedToolSourceList:
        """List the sources, newest first, without their documents. cursor: The pagination cursor value. page_size:
        Number of results to return per page."""
        return cast("models.PaginatedToolSourceList", self._call("GET", "/api/v1/tool-sources", query={"cursor": cursor, "page_size": page_size}))

    def tool_sources_list_all(self, *, page_size: int | None = None) -> Iterator[models.ToolSource]:
        """Go through all rows of ``tool_sources_list``, page by page."""
        return self._every(lambda cursor: self.tool_sources_list(page_size=page_size, cursor=cursor))

    def tool_sources_create(self, body: models.ToolSourceInputRequest, *, idempotency_key: str | None = None) -> models.ToolSource:
        """Add a source and have it read; its tools wait to be accepted, unless `accept_all` is set."""
        return cast("models.ToolSource", self._call("POST", "/api/v1/tool-sources", body=body, idempotency_key=idempotency_key))

    def tool_sources_get(self, id: int) -> models.ToolSource:
        """Return a source, without its document."""
        return cast("models.ToolSource", self._call("GET", f"/api/v1/tool-sources/{id}"))

    def tool_sources_update(self, id: int, body: models.PatchedToolSourceUpdateRequest | None = None, *, idempotency_key: str | None = None) -> models.ToolSource:
        """Change a source; it is read again when what is read has changed."""
        return cast("models.ToolSource", self._call("PATCH", f"/api/v1/tool-sources/{id}", body=body or {}, idempotency_key=idempotency_key))

    def tool_sources_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Remove a source with its tools, credentials and tests."""
        self._call("DELETE", f"/api/v1/tool-sources/{id}", idempotency_key=idempotency_key)

    def contract_tests_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedContractTestList:
        """List the tests, newest first, and how each ended last. cursor: The pagination cursor value. page_size:
        Number of results to return per page."""
        return cast("models.PaginatedContractTestList", self._call("GET", f"/api/v1/tool-sources/{id}/contract-tests", query={"cursor": cursor, "page_size": page_size}))

    def contract_tests_list_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.ContractTest]:
        """Go through all rows of ``contract_tests_list``, page by page."""
        return self._every(lambda cursor: self.contract_tests_list(id, page_size=page_size, cursor=cursor))

    def contract_tests_set(self, id: int, body: models.ContractTestInputRequest, *, idempotency_key: str | None = None) -> models.ContractTest:
        """Attach a test to a tool, or replace the one of that name."""
        return cast("models.ContractTest", self._call("PUT", f"/api/v1/tool-sources/{id}/contract-tests", body=body, idempotency_key=idempotency_key))

    def contract_tests_delete(self, id: int, test_pk: int, *, idempotency_key: str | None = None) -> None:
        """Remove a test."""
        self._call("DELETE", f"/api/v1/tool-sources/{id}/contract-tests/{test_pk}", idempotency_key=idempotency_key)

    def contract_tests_run(self, id: int, test_pk: int, body: models.ContractTestRunRequest | None = None, *, idempotency_key: str | None = None) -> models.ContractTest:
        """Make a test's call with a version of its tool, and return how it ended."""
        return cast("models.ContractTest", self._call("POST", f"/api/v1/tool-sources/{id}/contract-tests/{test_pk}/run", body=body or {}, idempotency_key=idempotency_key))

    def tool_credentials_list(self, id: int) -> models.PaginatedToolCredentialList:
        """List a source's credentials, without their secrets."""
        return cast("models.PaginatedToolCredentialList", self._call("GET", f"/api/v1/tool-sources/{id}/credentials"))

    def tool_credentials_set(self, id: int, body: models.ToolCredentialInputRequest, *, idempotency_key: str | None = None) -> models.ToolCredential:
        """Store a credential, or replace the one of that place; it is never shown again."""
        return cast("models.ToolCredential", self._call("PUT", f"/api/v1/tool-sources/{id}/credentials", body=body, idempotency_key=idempotency_key))

    def tool_credentials_forget(self, credential_pk: int, id: int, *, idempotency_key: str | None = None) -> None:
        """Forget a credential."""
        self._call("DELETE", f"/api/v1/tool-sources/{id}/credentials/{credential_pk}", idempotency_key=idempotency_key)

    def tool_sources_refresh(self, id: int, body: models.ToolSourceRefreshRequest | None = None, *, idempotency_key: str | None = None) -> models.ToolSourceRefreshing:
        """Read a source again, in a job; what has changed waits to be accepted."""
        return cast("models.ToolSourceRefreshing", self._call("POST", f"/api/v1/tool-sources/{id}/refresh", body=body or {}, idempotency_key=idempotency_key))

    def tool_versions_list(self, id: int, *, cursor: str | None = None, page_size: int | None = None, state: Literal['current', 'rejected', 'retired', 'waiting'] | None = None) -> models.PaginatedToolVersionList:
        """List the versions, newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page. state: Only those in this state."""
        return cast("models.PaginatedToolVersionList", self._call("GET", f"/api/v1/tool-sources/{id}/versions", query={"cursor": cursor, "page_size": page_size, "state": state}))

    def tool_versions_list_all(self, id: int, *, page_size: int | None = None, state: Literal['current', 'rejected', 'retired', 'waiting'] | None = None) -> Iterator[models.ToolVersion]:
        """Go through all rows of ``tool_versions_list``, page by page."""
        return self._every(lambda cursor: self.tool_versions_list(id, page_size=page_size, state=state, cursor=cursor))

    def tool_versions_get(self, id: int, version_pk: int) -> models.ToolVersionDetail:
        """Return a version with the tool's form, and how it differs from the current one."""
        return cast("models.ToolVersionDetail", self._call("GET", f"/api/v1/tool-sources/{id}/versions/{version_pk}"))

    def tool_versions_accept(self, id: int, body: models.ToolVersionsAcceptRequest, *, idempotency_key: str | None = None) -> list[models.ToolVersion]:
        """Make versions current, after their contract tests have passed; 409 with the failures otherwise."""
        return cast("list[models.ToolVersion]", self._call("POST", f"/api/v1/tool-sources/{id}/versions/accept", body=body, idempotency_key=idempotency_key))

    def tool_versions_reject(self, id: int, body: models.ToolVersionsInputRequest, *, idempotency_key: str | None = None) -> list[models.ToolVersion]:
        """Turn down versions that wait; a refresh does not offer the same again."""
        return cast("list[models.ToolVersion]", self._call("POST", f"/api/v1/tool-sources/{id}/versions/reject", body=body, idempotency_key=idempotency_key))

    def toolkits_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedToolkitList:
        """List the named sets of tools, the newest first. cursor: The pagination cursor value. page_size: Number of
        results to return per page."""
        return cast("models.PaginatedToolkitList", self._call("GET", "/api/v1/toolkits", query={"cursor": cursor, "page_size": page_size}))

    def toolkits_list_all(self, *, page_size: int | None = None) -> Iterator[models.Toolkit]:
        """Go through all rows of ``toolkits_list``, page by page."""
        return self._every(lambda cursor: self.toolkits_list(page_size=page_size, cursor=cursor))

    def toolkits_create(self, body: models.ToolkitInputRequest, *, idempotency_key: str | None = None) -> models.Toolkit:
        """Create toolkit, or replace what the one of that name contains."""
        return cast("models.Toolkit", self._call("POST", "/api/v1/toolkits", body=body, idempotency_key=idempotency_key))

    def toolkits_read(self, id: int) -> models.Toolkit:
        """Return a toolkit."""
        return cast("models.Toolkit", self._call("GET", f"/api/v1/toolkits/{id}"))

    def toolkits_replace(self, id: int, body: models.ToolkitChangeRequest, *, idempotency_key: str | None = None) -> models.Toolkit:
        """Replace what a toolkit contains; its name stays."""
        return cast("models.Toolkit", self._call("PUT", f"/api/v1/toolkits/{id}", body=body, idempotency_key=idempotency_key))

    def toolkits_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Delete a toolkit that no grant uses."""
        self._call("DELETE", f"/api/v1/toolkits/{id}", idempotency_key=idempotency_key)

    def tools_list(self, *, collection: list[int] | None = None, system: Literal['native', 'langchain', None] | None | None = None, use_langchain: bool | None | None = None) -> models.Tools:
        """List the tools some call of which the policy could allow, in the function format of OpenAI. collection:
        Id of a collection the calls will be about; default: all. system: What carries the tools out: this platform
        itself, or langchain-core on it. The answer is the same.  * `native` - native * `langchain` - langchain.
        use_langchain: true is the same as system=langchain."""
        return cast("models.Tools", self._call("GET", "/api/v1/tools", query={"collection": collection, "system": system, "use_langchain": use_langchain}))

    def tools_execute(self, body: models.ToolExecuteInputRequest | None = None, *, system: Literal['native', 'langchain', None] | None | None = None, use_langchain: bool | None | None = None, idempotency_key: str | None = None) -> models.ToolExecution:
        """Run calls that a model made elsewhere: allowed ones at once, denied ones not, and some wait for approval.
        system: What carries the tools out: this platform itself, or langchain-core on it. The answer is the same.
        * `native` - native * `langchain` - langchain. use_langchain: true is the same as system=langchain."""
        return cast("models.ToolExecution", self._call("POST", "/api/v1/tools/execute", query={"system": system, "use_langchain": use_langchain}, body=body or {}, idempotency_key=idempotency_key))

    def tools_suggest(self, *, limit: int | None = None, question: str) -> models.PaginatedToolSuggestionList:
        """Suggest tools that fit a question and that the caller may call, by words, meaning and how their calls
        went. question: What is to be done, in plain words."""
        return cast("models.PaginatedToolSuggestionList", self._call("GET", "/api/v1/tools/suggestions", query={"limit": limit, "question": question}))

    def trials_failure_tags(self, id: int, body: models.TagsInputRequest | None = None, *, idempotency_key: str | None = None) -> models.TagsOutput:
        """Give tags to a failing answer and take others from it; undone by the opposite."""
        return cast("models.TagsOutput", self._call("POST", f"/api/v1/trials/{id}/failure-tags", body=body or {}, idempotency_key=idempotency_key))

    def usage_read(self, *, since: str | None = None, until: str | None = None) -> models.UsageFigures:
        """Show calls, failures, times, tokens and money by tool, member, model and day: one's own, or everybody's.
        since: The first day; 29 days before the last if not given. until: The last day; today if not given."""
        return cast("models.UsageFigures", self._call("GET", "/api/v1/usage", query={"since": since, "until": until}))

    def webhooks_list(self, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedWebhookList:
        """List the webhooks, newest first. cursor: The pagination cursor value. page_size: Number of results to
        return per page."""
        return cast("models.PaginatedWebhookList", self._call("GET", "/api/v1/webhooks", query={"cursor": cursor, "page_size": page_size}))

    def webhooks_list_all(self, *, page_size: int | None = None) -> Iterator[models.Webhook]:
        """Go through all rows of ``webhooks_list``, page by page."""
        return self._every(lambda cursor: self.webhooks_list(page_size=page_size, cursor=cursor))

    def webhooks_create(self, body: models.WebhookInputRequest, *, idempotency_key: str | None = None) -> models.WebhookCreated:
        """Add a webhook; the answer holds the secret that signs its calls, this once."""
        return cast("models.WebhookCreated", self._call("POST", "/api/v1/webhooks", body=body, idempotency_key=idempotency_key))

    def webhooks_get(self, id: int) -> models.Webhook:
        """Return a webhook, without its secret."""
        return cast("models.Webhook", self._call("GET", f"/api/v1/webhooks/{id}"))

    def webhooks_update(self, id: int, body: models.PatchedWebhookUpdateRequest | None = None, *, idempotency_key: str | None = None) -> models.Webhook:
        """Change address, events or description, or switch it off and on."""
        return cast("models.Webhook", self._call("PATCH", f"/api/v1/webhooks/{id}", body=body or {}, idempotency_key=idempotency_key))

    def webhooks_delete(self, id: int, *, idempotency_key: str | None = None) -> None:
        """Remove a webhook with its log; what it was not told yet, it will not be told."""
        self._call("DELETE", f"/api/v1/webhooks/{id}", idempotency_key=idempotency_key)

    def webhooks_deliveries(self, id: int, *, cursor: str | None = None, page_size: int | None = None) -> models.PaginatedWebhookDeliveryList:
        """List what was sent to a webhook in the last 30 days and what came of it, newest first. cursor: The
        pagination cursor value. page_size: Number of results to return per page."""
        return cast("models.PaginatedWebhookDeliveryList", self._call("GET", f"/api/v1/webhooks/{id}/deliveries", query={"cursor": cursor, "page_size": page_size}))

    def webhooks_deliveries_all(self, id: int, *, page_size: int | None = None) -> Iterator[models.WebhookDelivery]:
        """Go through all rows of ``webhooks_deliveries``, page by page."""
        return self._every(lambda cursor: self.webhooks_deliveries(id, page_size=page_size, cursor=cursor))

    def webhooks_redeliver(self, delivery_pk: int, id: int, *, idempotency_key: str | None = None) -> models.WebhookDelivery:
        """Send an event again, as a new delivery with the same event id."""
        return cast("models.WebhookDelivery", self._call("POST", f"/api/v1/webhooks/{id}/deliveries/{delivery_pk}/redeliver", idempotency_key=idempotency_key))

    def webhooks_ping(self, id: int, *, idempotency_key: str | None = None) -> models.WebhookDelivery:
        """Send a `ping`; look into the deliveries for what came of it."""
        return cast("models.WebhookDelivery", self._call("POST", f"/api/v1/webhooks/{id}/ping", idempotency_key=idempotency_key))

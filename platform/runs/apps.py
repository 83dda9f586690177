"""App configuration."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Run": (
            "names: request error_message background; content: answer; codes: kind model status "
            "stop_reason limit_reached error_code usage"
        ),
        "RunEvent": "content: data; codes: kind",
        "RunStep": "content: turn",
        "ToolCall": (
            "names: call_id parent_call_id path name tool_version decision_why; content: arguments "
            "arguments_masked content payload; codes: decision status error_code"
        ),
        "PendingDecision": (
            "names: call_id name arguments reason approver edited_arguments decision_reason answer; "
            "codes: kind state status approver_kind"
        ),
        "UsageRecord": "names: attribution; codes: kind provider model service_tier",
        "ChunkRead": "names: collection_name tool; content: document_name",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "Run": (
            "text: answer error_message; json: request.conversation=conversations.Conversation "
            "request.assistant=conversations.Assistant request.collections=collections.Collection "
            "request.narrowed/documents=collections.Document"
        ),
        "RunEvent": "json: data.text=later",  # pieces of an answer, whose markers may be cut
        "ToolCall": "numbers: user_id=tenancy.User rule_id=tools.ToolGrant; text: content; words: decision_why.rule=tools.ToolGrant",
        "PendingDecision": "by: approver approver_kind member=tenancy.User; text: reason answer",
        "UsageRecord": (
            "numbers: run_id=runs.Run user_id=tenancy.User hold_id=budgets.BudgetHold; "
            "json: attribution.assistant=conversations.Assistant attribution.collection=collections.Collection "
            "attribution.document=collections.Document attribution.conversation=conversations.Conversation "
            "attribution.experiment=evaluations.Experiment attribution.sampling_rule=evaluations.SamplingRule "
            "attribution.dataset=datasets.Dataset attribution.generation=datasets.GenerationJob attribution.run=runs.Run"
        ),
        "ChunkRead": (
            "numbers: run_id=runs.Run user_id=tenancy.User chunk_id=collections.Chunk document_id=collections.Document"
        ),
    }

    def ready(self) -> None:
        from erasure.kinds import on_content_erase
        from erasure.removal import retention_kind_register
        from exports.moves import keys_tell, on_workspace_import
        from jobs.registry import before_exit, before_fork, on_sweep
        from runs.approvals.expiry import decisions_expire
        from runs.arriving import runs_arrived
        from runs.erasing import runs_erase
        from runs.providers import providers_preload
        from runs.readings import runs_read
        from runs.retention import RUNS
        from runs.sandbox import sandbox_close
        from runs.services import orphans_end, runs_bereave
        from tenancy.losses import on_loss
        from tenancy.readings import reads_for_metrics

        before_fork(providers_preload)
        on_sweep(decisions_expire)
        on_sweep(orphans_end)
        retention_kind_register(RUNS, every_s=300)
        on_content_erase(runs_erase)
        on_loss(runs_bereave)
        before_exit(sandbox_close)
        reads_for_metrics(runs_read)
        keys_tell({"run_id": "runs.Run", "run_ids": "runs.Run"})
        on_workspace_import(runs_arrived)

"""App configuration."""

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "apps.conversations"
    label = "conversations"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Assistant": "names: slug name description",
        "AssistantVersion": (
            "names: prompt output output_name output_schema starters note; codes: mode model options"
        ),
        "Conversation": "names: title tools_off draft; codes: model",
        "Message": "names: author problem; content: text data unsupported compared words",
        "Citation": "names: collection_name; content: document_name quote header markers",
        "Attachment": "content: name; codes: media_type",
        "Feedback": "names: reason comment; codes: verdict",
        "ConversationShare": "names: title snapshot",
        "Prompt": "names: name description text",
        "QueuedQuestion": "names: text request problem; codes: model",
        "ConversationRules": "names: instructions; codes: support_model",
        "MemoryEntry": "names: text",
        "Picture": "names: name call_id; content: content; codes: media_type sha256",
        "Project": "names: name instructions; codes: sharing",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "AssistantVersion": "plain: output_schema starters",
        "Message": "text: text compared",
        "Citation": "numbers: chunk_ref=collections.Chunk; plain: markers",
        "ConversationShare": (
            "new: key; json: snapshot.chunk_ref=collections.Chunk snapshot.document_id=collections.Document "
            "snapshot.picture_id=conversations.Picture"
        ),
        "QueuedQuestion": "stays: passing",
        "MemoryEntry": "stays: private",
        "MemorySetting": "stays: private",
    }

    def ready(self) -> None:
        from apps.collections.storage.lost import on_document_lost
        from apps.conversations.assistants.selectors import assistant_names
        from apps.conversations.pictures.services import pictures_forget
        from apps.conversations.projects.services import person_projects_erase, projects_unnamed
        from apps.conversations.prompts.services import person_prompts_erase, prompts_unnamed
        from apps.conversations.rules.services import (
            CONVERSATIONS as KEPT_CONVERSATIONS,
        )
        from apps.conversations.rules.services import (
            UNDER_WAY,
        )
        from apps.conversations.toolset.bundle import BUNDLE
        from apps.conversations.toolset.trade import TRADE_BUNDLE
        from apps.conversations.transcript.shown import conversations_unnamed, runs_related
        from apps.conversations.turns.arriving import conversations_arrived
        from apps.conversations.turns.erasing import person_conversations_erase
        from apps.conversations.turns.erasing_content import CONVERSATIONS, conversations_made_erase
        from apps.conversations.turns.lost_titles import titles_later
        from apps.tools.toolset.bundles import bundle_register
        from audit.names import audit_names_judged_by
        from budgets.assistants import assistants_from
        from erasure.kinds import content_kind_register, on_content_erase
        from erasure.removal import retention_kind_register
        from erasure.rules import on_person_erase
        from exports.moves import keys_tell, on_workspace_import
        from runs.retention import runs_emptied_with
        from runs.withheld import runs_related_by

        assistants_from(assistant_names)
        bundle_register(BUNDLE)
        runs_related_by(runs_related)
        runs_emptied_with(pictures_forget)
        audit_names_judged_by("conversations.conversation", conversations_unnamed)
        audit_names_judged_by("conversations.project", projects_unnamed)
        audit_names_judged_by("conversations.prompt", prompts_unnamed)
        on_document_lost(titles_later)
        on_person_erase(person_conversations_erase)
        on_person_erase(person_projects_erase)
        on_person_erase(person_prompts_erase)
        on_content_erase(conversations_made_erase)
        content_kind_register(CONVERSATIONS)
        retention_kind_register(KEPT_CONVERSATIONS, [UNDER_WAY], every_s=300)
        bundle_register(TRADE_BUNDLE)
        keys_tell(
            {
                "conversation_id": "conversations.Conversation",
                "turn_id": "conversations.Turn",
                "assistant_id": "conversations.Assistant",
                "project_id": "conversations.Project",
                "memory_entry": "conversations.MemoryEntry",
            }
        )
        on_workspace_import(conversations_arrived)

"""App configuration."""

from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Dataset": "names: slug name description; codes: options",
        "DatasetRow": (
            "names: scores; content: question answer expected rationale steps sources extra tags lineage;"
            " codes: content_hash type difficulty language status split"
        ),
        "RowReview": "names: note; codes: verdict content_hash",
        "RowContent": "content: data; codes: hash",
        "DatasetVersion": "names: note; content: manifest; codes: content_hash signature",
        "VersionRow": "codes: split",
        "DatasetExport": (
            "names: error_message problems findings; content: file; codes: status error_code format split"
        ),
        "DatasetImport": (
            "names: error_message name problems; content: file errors_file; codes: status error_code format"
        ),
        "DatasetCheck": "names: error_message result; codes: status error_code kind options",
        "Acceptance": "names: shown note; codes: fingerprint kind",
        "GenerationJob": "names: reason actor estimate shortfall manifest; codes: options model state",
        "GenerationItem": "names: reason; content: data; codes: type difficulty chunks state driver",
        "PaidCall": "content: turn results; codes: stage",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "DatasetRow": (
            "text: answer rationale; json: lineage.generation=datasets.GenerationJob "
            "lineage.item=datasets.GenerationItem lineage.import=datasets.DatasetImport lineage.turn=conversations.Turn "
            "lineage.conversation=conversations.Conversation lineage.feedback_id=conversations.Feedback"
        ),
        "DatasetVersion": (
            "json: manifest.generations/job=datasets.GenerationJob manifest.imports/import=datasets.DatasetImport "
            "manifest.collections/id=collections.Collection"
        ),
        "RowContent": "json: data.data/id=datasets.DatasetRow",
        "VersionRow": "numbers: row_ref=datasets.DatasetRow",
        "DatasetImport": "files: file errors_file",
        "DatasetExport": "files: file; json: findings.row=datasets.DatasetRow",
        "Dataset": "json: options.against=datasets.Dataset",
        "DatasetCheck": (
            "json: options.rows=datasets.DatasetRow options.job=datasets.GenerationJob options.undo=datasets.DatasetCheck "
            "result.row=datasets.DatasetRow result.kept=datasets.DatasetRow result.dropped=datasets.DatasetRow "
            "result.evaluated=datasets.DatasetRow result.seen=datasets.DatasetRow "
            "result.documents/id=collections.Document"
        ),
        "GenerationJob": "json: options.collections=collections.Collection manifest.collections/id=collections.Collection",
        "GenerationItem": "json: chunks.chunks=collections.Chunk data.run_id=runs.Run",
    }

    def ready(self) -> None:
        """Register the files that rows name, the function that searches rows, and what makes questions to begin with."""
        from apps.conversations.chat.starters import questions_from
        from apps.datasets.curation.erasing import datasets_made_erase
        from apps.datasets.generation.first_questions import first_question
        from apps.datasets.rows import search as row_search
        from apps.datasets.rows.files import dataset_files_named
        from apps.datasets.rows.retention import DATASETS, DOCUMENTS_ASKED, GENERATED, WORKED_ON
        from apps.datasets.versions.arriving import datasets_arrived
        from blobs.references import named_by
        from erasure.kinds import on_content_erase
        from erasure.places import Place, files_kept
        from erasure.removal import retention_kind_register
        from erasure.retention import retention_used_by
        from exports.moves import keys_tell, on_workspace_import
        from tenancy.row_security import register_function

        named_by(dataset_files_named)
        on_content_erase(datasets_made_erase)
        retention_kind_register(DATASETS, [GENERATED, WORKED_ON])
        retention_used_by("documents", DOCUMENTS_ASKED)
        questions_from(first_question)
        register_function(row_search.SIGNATURE, row_search.SQL, tables=row_search.TABLES)
        works = {
            "export": "datasets.DatasetExport",
            "errors": "datasets.DatasetImport",
            "splits": "datasets.DatasetCheck",
        }
        files_kept(Place("datasets/", "datasets.Dataset", works))
        keys_tell(
            {
                "dataset_id": "datasets.Dataset",
                "row_id": "datasets.DatasetRow",
                "row_ref": "datasets.DatasetRow",
            }
        )
        on_workspace_import(datasets_arrived)

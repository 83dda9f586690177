"""Django app: the ledger's functions and the sweep."""

from django.apps import AppConfig


class BudgetsConfig(AppConfig):
    name = "budgets"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Budget": "codes: kind period",
        "BudgetHold": "codes: spends",
    }
    moves = {  # what an import does with their rows: see exports.moves
        # Last: the database charges budgets that are there for each usage record that is written.
        "Budget": "without: kind=key,job; last; by: subject_id kind member=tenancy.User assistant=conversations.Assistant",
        "BudgetHold": "stays: passing",
        "BudgetSpend": "stays: computed",
    }

    def ready(self) -> None:
        from budgets import ledger_sql
        from budgets.readings import budgets_read
        from budgets.services import budgets_sweep
        from jobs.registry import on_sweep
        from tenancy.readings import reads_for_metrics
        from tenancy.row_security import register_function

        for signature, sql in ledger_sql.FUNCTIONS.items():
            register_function(signature, sql, tables=ledger_sql.TABLES)
        on_sweep(budgets_sweep)
        reads_for_metrics(budgets_read)

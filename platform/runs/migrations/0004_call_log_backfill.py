from django.db import migrations
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Length

from toolloop.masking import masked  # a pure function of the library below all apps

PATHS = {"conversation": "chat", "tool_calls": "rest"}


def fill(apps, schema_editor):
    """Give the calls of before what the log shows: whose they are, how they came, no secret.

    The walls are not raised yet while migrations run, so the rows of all tenants can be written.
    """
    calls = apps.get_model("runs", "ToolCall").objects
    runs = apps.get_model("runs", "Run").objects.filter(pk=OuterRef("run_id"))
    calls.update(
        user_id=Subquery(runs.values("user_id")[:1]), result_size=Length("content"), path="job"
    )
    for kind, path in PATHS.items():
        calls.filter(run__kind=kind).update(path=path)
    for pk, arguments in calls.values_list("pk", "arguments").iterator():
        shown = masked(arguments)
        if shown != arguments:
            calls.filter(pk=pk).update(arguments_masked=shown)


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_call_log_columns")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

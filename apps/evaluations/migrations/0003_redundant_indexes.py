from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("evaluations", "0002_words")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "assignment": ["user"],
                "baseline": ["dataset"],
                "experiment": ["tenant"],
                "failuretag": ["tenant"],
                "judgecheck": ["experiment", "rubric_version"],
                "preference": ["a"],
                "rubric": ["tenant"],
                "samplingrule": ["tenant"],
                "scorecache": ["tenant"],
            }
        )
    ]

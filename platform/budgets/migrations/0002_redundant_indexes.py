from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("budgets", "0001_initial")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "budget": ["tenant"],
                "budgethold": ["tenant"],
                "budgetrules": ["tenant"],
                "budgetspend": ["budget"],
            }
        )
    ]

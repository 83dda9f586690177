from django.db import migrations
from django.db.models import F, OuterRef, Subquery


def fill(apps, schema_editor):
    """Make one branch of the turns there are.

    The walls are not raised yet while migrations run, so the rows of all tenants can be written.
    """
    turns = apps.get_model("conversations", "Turn").objects
    conversations = apps.get_model("conversations", "Conversation").objects
    before = turns.filter(conversation=OuterRef("conversation"), index=OuterRef("index") - 1)
    turns.filter(index__gt=0).update(parent=Subquery(before.values("pk")[:1]))
    last = turns.filter(conversation=OuterRef("pk")).order_by(F("index").desc())
    conversations.update(head=Subquery(last.values("pk")[:1]))


class Migration(migrations.Migration):
    dependencies = [("conversations", "0003_modes_branches_and_assistants")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

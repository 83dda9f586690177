from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("conversations", "0003_listed_index")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "assistant": ["tenant"],
                "assistantcollection": ["version"],
                "assistanthelper": ["version"],
                "assistantversion": ["assistant"],
                "citation": ["turn"],
                "conversation": ["tenant"],
                "conversationcollection": ["conversation"],
                "conversationrules": ["tenant"],
                "feedback": ["turn"],
                "message": ["turn"],
                "queuedquestion": ["conversation"],
                "sharereader": ["share"],
                "turn": ["conversation"],
            }
        )
    ]

from django.db import migrations

# Conversations from before had one line of turns: each turn's parent is the one before it, the last one is the head.
PARENTS = """
UPDATE conversations_turn t SET parent_id = p.id FROM conversations_turn p
WHERE p.conversation_id = t.conversation_id AND p.index = t.index - 1 AND t.parent_id IS NULL
"""
HEADS = """
UPDATE conversations_conversation c SET head_id = t.id FROM conversations_turn t
WHERE t.conversation_id = c.id AND c.head_id IS NULL
AND t.index = (SELECT max(o.index) FROM conversations_turn o WHERE o.conversation_id = c.id)
"""


class Migration(migrations.Migration):
    dependencies = [("conversations", "0003_assistants_and_branches")]

    operations = [
        migrations.RunSQL(PARENTS, migrations.RunSQL.noop),
        migrations.RunSQL(HEADS, migrations.RunSQL.noop),
    ]

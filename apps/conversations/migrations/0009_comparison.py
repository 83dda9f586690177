from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0008_picture'),
    ]

    operations = [
        migrations.AddField(
            model_name='turn',
            name='side',
            field=models.PositiveSmallIntegerField(help_text='Of two answers to one question: 1 for the first, 2 for the second; empty: the only one.', null=True),
        ),
        migrations.AddField(
            model_name='turn',
            name='is_kept',
            field=models.BooleanField(help_text='Of two answers to one question: whether its reader continued with this one; empty: not chosen yet.', null=True),
        ),
    ]

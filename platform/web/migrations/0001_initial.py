import django.contrib.postgres.fields
from django.db import migrations, models

# Counts of the last minutes: what a crash empties is soon full again, and each attempt writes one.
UNLOGGED = "ALTER TABLE web_attemptwindow SET UNLOGGED"
LOGGED = "ALTER TABLE web_attemptwindow SET LOGGED"


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='AttemptWindow',
            fields=[
                ('key', models.CharField(help_text='A keyed hash of whose limit it is.', max_length=64, primary_key=True, serialize=False)),
                ('taken', django.contrib.postgres.fields.ArrayField(base_field=models.DateTimeField(), help_text='When, oldest first.', size=None)),
                ('forget_at', models.DateTimeField()),
            ],
        ),
        migrations.RunSQL(UNLOGGED, LOGGED),
    ]

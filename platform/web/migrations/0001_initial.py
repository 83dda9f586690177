import django.contrib.postgres.fields
from django.db import migrations, models

# Counts of the last minutes: what a crash empties is soon full again, and each attempt writes one.
UNLOGGED = "ALTER TABLE web_attemptwindow SET UNLOGGED; ALTER TABLE web_sharedvalue SET UNLOGGED"
LOGGED = "ALTER TABLE web_attemptwindow SET LOGGED; ALTER TABLE web_sharedvalue SET LOGGED"


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='AttemptWindow',
            fields=[
                ('key', models.CharField(help_text='Keyed hash of what the limit applies to.', max_length=64, primary_key=True, serialize=False)),
                ('taken', django.contrib.postgres.fields.ArrayField(base_field=models.DateTimeField(), help_text='Times of the attempts, oldest first.', size=None)),
                ('forget_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='SharedValue',
            fields=[
                ('key', models.CharField(help_text="Keyed hash of the cache key.", max_length=64, primary_key=True, serialize=False)),
                ('value', models.JSONField()),
                ('expires_at', models.DateTimeField()),
            ],
        ),
        migrations.RunSQL(UNLOGGED, LOGGED),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0002_waits_since'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='retried_at',
            field=models.DateTimeField(help_text='When another job took over what this failed one was to do.', null=True),
        ),
        migrations.AddField(
            model_name='worker',
            name='version',
            field=models.CharField(blank=True, db_default='', help_text='Of the code it runs.', max_length=40),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('webhooks', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='webhook',
            name='previous_secret_encrypted',
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name='webhook',
            name='rotated_at',
            field=models.DateTimeField(null=True),
        ),
    ]


import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenancy', '0004_audit_seal'),
    ]

    operations = [
        migrations.CreateModel(
            name='IdempotentAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('caller', models.CharField(max_length=30)),
                ('route', models.CharField(max_length=150)),
                ('key', models.CharField(max_length=255)),
                ('fingerprint', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField()),
                ('body_encrypted', models.BinaryField()),
                ('expires_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='idempotent_answer_expiry')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'caller', 'route', 'key'), name='idempotent_answer_one_per_key')],
            },
        ),
    ]

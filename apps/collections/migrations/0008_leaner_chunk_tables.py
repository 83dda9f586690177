"""Drop keys and indexes that the composite ones make superfluous: a bulk load checked and wrote them for every row."""

import django.db.models.deletion
from django.db import migrations, models

import tenancy.fields


class Migration(migrations.Migration):

    dependencies = [
        ('collections', '0007_packed_postings'),
        ('tenancy', '0002_model_entries_and_endpoints'),
    ]

    operations = [
        migrations.AlterField(
            model_name='chunk',
            name='collection',
            field=tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='chunks', to='collections.collection'),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='document',
            field=tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='chunks', to='collections.document'),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant'),
        ),
        migrations.AlterField(
            model_name='chunkterms',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant'),
        ),
        migrations.AlterField(
            model_name='embedding',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant'),
        ),
        migrations.AlterField(
            model_name='posting',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant'),
        ),
        migrations.AlterField(
            model_name='termfrequency',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant'),
        ),
    ]

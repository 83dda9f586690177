import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenancy.fields


class Migration(migrations.Migration):

    dependencies = [
        ('collections', '0004_vector_graphs'),
        ('conversations', '0004_redundant_indexes'),
        ('tenancy', '0007_finished'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='archived_at',
            field=models.DateTimeField(help_text='When its owner archived it; the next question brings it back.', null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='removed_at',
            field=models.DateTimeField(help_text='When its owner deleted it; it is gone for good within the hour that undoes this.', null=True),
        ),
        migrations.CreateModel(
            name='Project',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('instructions', models.TextField(blank=True, help_text='Given to the model with each question in it.')),
                ('searches_all', models.BooleanField(default=True, help_text="Its conversations begin with all collections. Deleting a chosen collection doesn't widen this.")),
                ('sharing', models.CharField(choices=[('owner', 'Only you'), ('members', 'Chosen members'), ('workspace', 'Everyone in the workspace')], default='owner', max_length=10)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(help_text="Owner; empty: their account was erased, and admins who see it manage it.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='conversation',
            name='project',
            field=tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='SET NULL', help_text='Project it belongs to; empty: none.', null=True, related_name='conversations', to='conversations.project'),
        ),
        migrations.CreateModel(
            name='ProjectCollection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('project', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='scope', to='conversations.project')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'collection'), name='project_collection_once')],
            },
        ),
        migrations.CreateModel(
            name='ProjectMember',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('project', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='members', to='conversations.project')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'user'), name='project_member_once')],
            },
        ),
    ]

from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("collections", "0002_document_content")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "chunklink": ["chunk"],
                "codepatterns": ["tenant"],
                "collectionsnapshot": ["collection"],
                "document": ["collection", "tenant"],
                "documentaccess": ["document"],
                "documenttyperules": ["tenant"],
                "filebatch": ["collection"],
                "fileblob": ["tenant"],
                "filerevision": ["batch"],
                "page": ["document"],
                "recognition": ["tenant"],
                "repository": ["collection"],
                "repositorypack": ["repository"],
            }
        )
    ]

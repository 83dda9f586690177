from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tools", "0001_initial")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "collectiontoolkit": ["collection"],
                "contracttest": ["tenant"],
                "toolcredential": ["source"],
                "toolentry": ["tenant"],
                "toolgrant": ["tenant"],
                "toolkit": ["tenant"],
                "toolkitmember": ["toolkit"],
                "toollimit": ["tenant"],
                "toollimituse": ["limit"],
                "toolsource": ["tenant"],
                "toolvector": ["tenant"],
                "toolversion": ["source", "tenant"],
            }
        )
    ]

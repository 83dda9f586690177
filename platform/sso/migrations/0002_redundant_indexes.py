from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("sso", "0001_initial")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "grouprole": ["tenant"],
                "scimgroup": ["tenant"],
                "scimgroupmember": ["tenant"],
                "scimtoken": ["tenant"],
                "scimuser": ["tenant"],
                "ssoconnection": ["tenant"],
                "ssodomain": ["tenant"],
                "ssoidentity": ["tenant"],
                "ssosignin": ["tenant"],
            }
        )
    ]

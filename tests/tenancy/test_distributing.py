"""What ``citus_distribute`` asks of Citus, in which order, by functions that stand in for it and write down what they are asked.

Citus itself isn't in CI; docs/many-machines.md says what was tried on a real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tenancy import distributing
from tenancy.database.base import as_login_role
from tenancy.management.commands import citus_distribute
from tenancy.row_security import tenant_models

pytestmark = pytest.mark.django_db
CITUS = """
CREATE TABLE asked (place serial, what text, name text, by text, beside text, shards text, mode text);
CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod "char");
CREATE FUNCTION create_reference_table(name text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO asked (what, name) VALUES ('copied', name);
    INSERT INTO pg_dist_partition VALUES (name::regclass, 'n') $$;
CREATE FUNCTION create_distributed_table(name text, by text, colocate_with text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO asked (what, name, by, beside, shards, mode) VALUES ('spread', name, by, colocate_with,
        current_setting('citus.shard_count'), current_setting('citus.multi_shard_modify_mode'));
    INSERT INTO pg_dist_partition VALUES (name::regclass, 'h') $$;
CREATE TABLE walls_down (name text);
CREATE FUNCTION run_command_on_placements(asked_of text, command text)
RETURNS TABLE (nodename text, nodeport int, shardid bigint, success boolean, result text) LANGUAGE plpgsql AS $$
DECLARE told text;
BEGIN
    EXECUTE replace(command, '%s', asked_of) INTO told;
    RETURN QUERY SELECT 'one', 5432, 1::bigint, true,
        CASE WHEN asked_of IN (SELECT name FROM walls_down) THEN 'f' WHEN told = 'true' THEN 't' ELSE told END;
END $$;
"""


@pytest.fixture
def citus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(citus_distribute, "has_citus", lambda cursor: True)
    # Only a superuser may set parameters that no extension has defined.
    monkeypatch.setattr(distributing, "_SETTINGS", {"application_name": "distributed"})
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(CITUS)
        yield cursor


def run(*words: str) -> str:
    told = StringIO()
    call_command("citus_distribute", *words, stdout=told)
    return told.getvalue()


def test_it_copies_shared_tables_then_spreads_those_of_tenants_beside_each_other(citus: Any) -> None:
    tables = sorted(model._meta.db_table for model in tenant_models())
    assert f"{len(tables)} tables of workspaces are distributed; {len(tables)} parts" in run("--shards", "4")
    citus.execute("SELECT what, replace(name, '\"', ''), by, beside, shards, mode FROM asked ORDER BY place")
    asked = citus.fetchall()
    copied = [row[1] for row in asked if row[0] == "copied"]
    spread = [row[1] for row in asked if row[0] == "spread"]
    assert [row[1] for row in asked] == [*copied, *spread]
    assert sorted(spread) == tables
    assert not set(copied) & set(tables)
    first = spread[0]
    assert {row[2:] for row in asked if row[0] == "spread"} == {
        ("tenant_id", "none", "4", "sequential"),
        ("tenant_id", f'"{first}"', "4", "sequential"),
    }


def test_roles_may_sign_in_on_the_other_machines_and_the_scope_is_told_there(citus: Any) -> None:
    run()
    citus.execute(
        "SELECT rolname FROM pg_roles WHERE rolcanlogin AND rolname LIKE 'groundwork\\_%' ORDER BY 1"
    )
    assert [name for (name,) in citus.fetchall()] == ["groundwork_platform", "groundwork_rw"]
    citus.execute(
        "SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setdatabase = "
        "(SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1"
    )
    assert [text for (text,) in citus.fetchall()] == ["application_name=distributed"]


def test_a_second_run_distributes_what_came_since(citus: Any) -> None:
    run()
    citus.execute("DELETE FROM asked")
    citus.execute("DELETE FROM pg_dist_partition WHERE logicalrelid = 'webhooks_webhook'::regclass")
    run()
    citus.execute("SELECT what, name, beside FROM asked")
    ((what, name, beside),) = citus.fetchall()
    assert (what, name) == ("spread", '"webhooks_webhook"')
    assert beside not in ("none", '"webhooks_webhook"')


def test_a_part_without_its_wall_is_named(citus: Any) -> None:
    citus.execute("INSERT INTO walls_down VALUES ('\"jobs_job\"')")
    with pytest.raises(
        CommandError, match=r"Keep the servers stopped.*\njobs_job: part 1 on one:5432 has no"
    ):
        run()


def test_a_table_whose_policy_is_gone_is_named(citus: Any) -> None:
    citus.execute("DROP POLICY tenant_isolation ON jobs_job")
    with pytest.raises(CommandError, match="jobs_job: part 1 on one:5432 has no wall"):
        run()


def test_what_citus_refuses_leaves_everything_as_it_was(citus: Any) -> None:
    citus.execute(
        "CREATE OR REPLACE FUNCTION create_distributed_table(name text, by text, colocate_with text) RETURNS void "
        "LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room'; END $$"
    )
    citus.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'")
    before = citus.fetchone()
    with pytest.raises(CommandError, match=r"Nothing was changed\. Citus refused a statement: no room"):
        run()
    citus.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'")
    assert citus.fetchone() == before
    citus.execute("SELECT count(*) FROM asked")
    assert citus.fetchone() == (0,)

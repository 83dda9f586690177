"""Every rule for migrations is seen failing on a planted breach, and lets through what is fine."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.contrib.postgres import operations as postgres
from django.contrib.postgres.fields import ArrayField
from django.core.management import CommandError, call_command
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState
from django.db.models.functions import Now, Random

from tenancy.management.commands import migrations_check
from tenancy.upgrades import operations as ours
from tenancy.upgrades.effects import Effect, Lock, Mark, Work
from tenancy.upgrades.reading import Reader
from tenancy.upgrades.rules import Breach, breaches, effects_of, judged, own_labels
from tests.docs_pages import block
from tests.walked import each

TITLE_SET = models.CheckConstraint(condition=~models.Q(title=""), name="title_set")
TITLE_ONE = models.UniqueConstraint(fields=["title"], name="title_one")
INDEX = models.Index(fields=["title"], name="by_title")


def state() -> ProjectState:
    found = ProjectState()
    key = ("id", models.BigAutoField(primary_key=True))
    found.add_model(ModelState("shelf", "Room", [key]))
    found.add_model(
        ModelState(
            "shelf",
            "Book",
            [
                key,
                ("title", models.CharField(max_length=40)),
                ("price", models.DecimalField(max_digits=8, decimal_places=2)),
                ("pages", models.IntegerField(null=True)),
                ("kept", models.BooleanField(db_default=False)),
                ("code", models.TextField(db_column="kode")),
                (
                    "room",
                    models.ForeignKey("shelf.Room", models.CASCADE, db_constraint=False, db_index=False),
                ),
            ],
            {
                "constraints": [
                    models.CheckConstraint(condition=models.Q(pages__gt=0), name="has_pages"),
                    models.UniqueConstraint(fields=["code"], name="code_one"),
                ],
                "unique_together": {("title", "price")},
            },
        )
    )
    found.add_model(ModelState("shelf", "Named", [key], {"db_table": "shelf_names"}))
    return found


def migration(*operations: Any, **marks: Any) -> migrations.Migration:
    kind = type("Migration", (migrations.Migration,), {"operations": list(operations), **marks})
    made: migrations.Migration = kind("0002_planted", "shelf")
    return made


def effects(*operations: Any, **marks: Any) -> list[Effect]:
    return Reader(migration(*operations, **marks), state()).read()


def found(*operations: Any, **marks: Any) -> list[Breach]:
    return judged(migration(*operations, **marks), effects(*operations, **marks))


def alter(name: str, field: Any) -> migrations.AlterField:
    return migrations.AlterField("book", name, field)


def add(field: Any) -> migrations.AddField:
    return migrations.AddField("Book", "extra", field)


BREAKS: list[tuple[Any, str, str]] = [
    (add(models.IntegerField(default=0)), "AddField book.extra", "insert rows without it"),
    (add(models.CharField(max_length=5, default="")), "AddField book.extra", "insert rows without it"),
    (add(models.FloatField(db_default=Random())), "AddField book.extra", "written again"),
    (
        add(
            models.GeneratedField(
                expression=models.F("pages") + 1, output_field=models.IntegerField(), db_persist=True
            )
        ),
        "AddField book.extra",
        "written again",
    ),
    (add(models.IntegerField(null=True, db_index=True)), "AddField book.extra", "index is built"),
    (add(models.IntegerField(null=True, unique=True)), "AddField book.extra", "index is built"),
    (
        add(models.ForeignKey("shelf.Room", models.CASCADE, null=True)),
        "AddField book.extra",
        "index is built",
    ),
    (migrations.RemoveField("book", "pages"), "RemoveField book.pages", "name this column"),
    (migrations.DeleteModel("Book"), "DeleteModel book", "still read and write"),
    (migrations.RenameField("book", "pages", "leaves"), "RenameField book.pages", "old name"),
    (migrations.RenameModel("Book", "Volume"), "RenameModel book", "old name"),
    (migrations.AlterModelTable("book", "books"), "AlterModelTable book", "old name"),
    (migrations.AlterOrderWithRespectTo("book", "room"), "AlterOrderWithRespectTo book", "don't fill"),
    (alter("pages", models.IntegerField()), "AlterField book.pages", "may write NULL"),
    (alter("pages", models.BigIntegerField(null=True)), "AlterField book.pages", "written again"),
    (alter("pages", models.PositiveIntegerField(null=True)), "AlterField book.pages", "written again"),
    (alter("title", models.CharField(max_length=20)), "AlterField book.title", "written again"),
    (alter("title", models.TextField(db_collation="C")), "AlterField book.title", "written again"),
    (alter("title", ArrayField(models.TextField())), "AlterField book.title", "written again"),
    (alter("price", models.DecimalField(max_digits=9, decimal_places=3)), "AlterField book.price", "again"),
    (alter("title", models.CharField(max_length=40, db_index=True)), "AlterField book.title", "index"),
    (alter("title", models.CharField(max_length=40, unique=True)), "AlterField book.title", "index"),
    (alter("title", models.CharField(max_length=40, db_column="t")), "AlterField book.title", "old name"),
    (alter("kept", models.BooleanField()), "AlterField book.kept", "rely on db_default"),
    (
        alter("room", models.ForeignKey("shelf.Room", models.CASCADE, db_index=False)),
        "AlterField book.room",
        "every row is checked",
    ),
    (migrations.AddIndex("book", INDEX), "AddIndex book.by_title", "writes wait"),
    (migrations.AddConstraint("book", TITLE_SET), "AddConstraint book.title_set", "every row is checked"),
    (migrations.AddConstraint("book", TITLE_ONE), "AddConstraint book.title_one", "index is built"),
    (migrations.RemoveConstraint("book", "code_one"), "RemoveConstraint book.code_one", "ON CONFLICT"),
    (
        migrations.AlterUniqueTogether("book", {("title", "price"), ("title", "pages")}),
        "AlterUniqueTogether book",
        "index is built",
    ),
    (migrations.RunPython(lambda apps, editor: None), "RunPython <lambda>", "row locks"),
    (
        migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("book", "title")]),
        "RemoveField book.title",
        "inserts rows without this column",
    ),
    (
        migrations.SeparateDatabaseAndState(database_operations=[migrations.RemoveField("book", "pages")]),
        "RemoveField book.pages",
        "name this column",
    ),
    (
        ours.DropKeyIndexesConcurrently({"book": ["room"]}),
        "DropKeyIndexesConcurrently",
        "in a transaction",
    ),
    (type("Strange", (migrations.operations.base.Operation,), {})(), "Strange", "isn't known"),
]


@pytest.mark.parametrize(
    ("operation", "step", "problem"), BREAKS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_step_that_breaks_the_code_before_or_locks_for_long_is_refused(
    operation: Any, step: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step == "Strange":
        monkeypatch.setattr(type(operation), "state_forwards", lambda *a: None)
    breach = found(operation)
    assert [b.step for b in breach] == [step]
    assert problem in breach[0].problem
    assert breach[0].instead
    # The same step with its reason, or in a migration that only removes, is let through.
    if any(e.mark is Mark.CONTRACT and e.problem for e in effects(operation)):
        assert found(operation, contract="Nothing has read it since release 1.4.") == []
    assert found(operation, explained={step: "The table has ten rows at most."}) == []


FINE: list[Any] = [
    add(models.IntegerField(null=True)),
    add(models.IntegerField(db_default=0)),
    add(models.DateTimeField(db_default=Now())),
    add(models.ForeignKey("shelf.Room", models.CASCADE, null=True, db_index=False)),
    add(models.ManyToManyField("shelf.Room")),
    migrations.RenameField("book", "code", "mark"),
    migrations.RenameModel("Named", "Name"),
    migrations.AlterModelTable("named", "shelf_names"),
    alter("pages", models.IntegerField(null=True, help_text="As printed.", db_default=1)),
    alter("title", models.CharField(max_length=40, null=True)),
    alter("title", models.CharField(max_length=80)),
    alter("title", models.TextField()),
    alter("price", models.DecimalField(max_digits=10, decimal_places=2)),
    migrations.RemoveConstraint("book", "has_pages"),
    migrations.AlterUniqueTogether("book", set()),
    migrations.AlterModelOptions("book", {"ordering": ["title"]}),
    migrations.RunPython(migrations.RunPython.noop),
    postgres.AddConstraintNotValid("book", TITLE_SET),
    migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("book", "pages")]),
    migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("book", "kept")]),
]


@pytest.mark.parametrize("operation", FINE, ids=lambda o: o.describe())
def test_a_step_that_the_code_before_can_live_with_is_let_through(operation: Any) -> None:
    assert found(operation) == []


SQL_BREAKS = [
    ("CREATE INDEX x ON shelf_book (title)", "RunSQL CREATE INDEX shelf_book", "writes wait"),
    ("create unique index on public.shelf_book (title)", "RunSQL CREATE INDEX shelf_book", "writes wait"),
    ("CREATE INDEX CONCURRENTLY x ON shelf_book (title)", "RunSQL CREATE INDEX shelf_book", "isn't valid"),
    ("ALTER TABLE shelf_book ADD COLUMN a int NOT NULL", "RunSQL ADD COLUMN shelf_book", "without it"),
    ("ALTER TABLE shelf_book ADD a int, ADD b int NOT NULL", "RunSQL ADD COLUMN shelf_book", "without it"),
    ("ALTER TABLE shelf_book ADD a float DEFAULT random()", "RunSQL ADD COLUMN shelf_book", "written again"),
    ("ALTER TABLE shelf_book ADD a int UNIQUE", "RunSQL ADD COLUMN shelf_book", "index is built"),
    ("ALTER TABLE ONLY shelf_book DROP COLUMN a", "RunSQL DROP COLUMN shelf_book", "may still use"),
    ("ALTER TABLE shelf_book DROP CONSTRAINT a", "RunSQL DROP CONSTRAINT shelf_book", "may still use"),
    ('ALTER TABLE "shelf_book" RENAME a TO b', "RunSQL RENAME shelf_book", "old name"),
    ("ALTER TABLE shelf_book ALTER a TYPE bigint", "RunSQL ALTER TYPE shelf_book", "written again"),
    ("ALTER TABLE shelf_book ALTER a SET NOT NULL", "RunSQL SET NOT NULL shelf_book", "may write NULL"),
    ("ALTER TABLE shelf_book ALTER a DROP DEFAULT", "RunSQL DROP DEFAULT shelf_book", "rely on"),
    ("ALTER TABLE shelf_book SET UNLOGGED", "RunSQL SET UNLOGGED shelf_book", "written again"),
    ("ALTER TABLE shelf_book ATTACH PARTITION a", "RunSQL ATTACH PARTITION shelf_book", "isn't known"),
    ("ALTER TABLE shelf_book ADD CONSTRAINT a CHECK (b > 0)", "RunSQL ADD CONSTRAINT shelf_book", "checked"),
    ("ALTER TABLE shelf_book ADD UNIQUE (a, b)", "RunSQL ADD CONSTRAINT shelf_book", "checked"),
    (
        "ALTER TABLE shelf_book ADD FOREIGN KEY (a) REFERENCES b",
        "RunSQL ADD CONSTRAINT shelf_book",
        "checked",
    ),
    ("DROP TABLE IF EXISTS shelf_book", "RunSQL DROP TABLE shelf_book", "may still use"),
    ("DROP FUNCTION counted(int)", "RunSQL DROP FUNCTION counted", "may still use"),
    ("/* all */ UPDATE shelf_book SET a = 'x;y' -- DROP", "RunSQL UPDATE shelf_book", "row locks"),
    ("DELETE FROM shelf_book", "RunSQL DELETE shelf_book", "row locks"),
    ("INSERT INTO shelf_book SELECT * FROM b", "RunSQL INSERT shelf_book", "row locks"),
    ("WITH a AS (DELETE FROM shelf_book RETURNING 1) SELECT 1", "RunSQL WITH a", "row locks"),
    ("LOCK TABLE shelf_book", "RunSQL LOCK shelf_book", "nobody can use"),
    ("VACUUM FULL shelf_book", "RunSQL VACUUM shelf_book", "nobody can use"),
    ("REINDEX TABLE shelf_book", "RunSQL REINDEX TABLE shelf_book", "nobody can use"),
    ("DO $$ BEGIN DROP TABLE x; END $$", "RunSQL DO", "isn't known"),
    ("CALL tidy()", "RunSQL CALL tidy()", "isn't known"),
]


@each("sql, step, problem", SQL_BREAKS)
def test_a_statement_that_breaks_the_code_before_or_locks_for_long_is_refused(
    sql: str, step: str, problem: str
) -> None:
    breach = found(migrations.RunSQL(sql))
    assert [b.step for b in breach] == [step]
    assert problem in breach[0].problem


def test_statements_that_are_fine_are_let_through() -> None:
    fine = [
        "ALTER TABLE shelf_book ADD COLUMN a int, ADD b timestamptz NOT NULL DEFAULT now();",
        "ALTER TABLE shelf_book ADD a text NOT NULL DEFAULT 'NOT; NULL', ALTER b DROP NOT NULL;",
        "ALTER TABLE shelf_book ADD CONSTRAINT a CHECK (b > 0 AND c IN (1, 2)) NOT VALID;",
        "ALTER TABLE shelf_book VALIDATE CONSTRAINT a;",
        "ALTER TABLE shelf_book ADD CONSTRAINT b UNIQUE USING INDEX b;",
        "ALTER TABLE shelf_book ENABLE ROW LEVEL SECURITY; ALTER TABLE shelf_book SET (fillfactor = 70);",
        "CREATE TABLE shelf_new (a int); CREATE INDEX ON shelf_new (a); INSERT INTO shelf_new SELECT 1;",
        "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS $x$ DELETE FROM shelf_book; SELECT 1 $x$;",
        "CREATE TRIGGER t BEFORE UPDATE ON shelf_book FOR EACH ROW EXECUTE FUNCTION f();",
        "DROP INDEX CONCURRENTLY IF EXISTS old; COMMENT ON TABLE shelf_book IS 'DROP TABLE x';",
        "INSERT INTO shelf_book (a) VALUES (1);",
    ]
    for sql in fine:
        assert found(migrations.RunSQL(sql)) == [], sql
    assert found(migrations.RunSQL([("INSERT INTO shelf_book (a) VALUES (%s)", [1])])) == []


def test_tables_of_the_same_migration_may_get_anything() -> None:
    new = migrations.CreateModel("Card", [("id", models.BigAutoField(primary_key=True))])
    column = migrations.AddField("card", "name", models.CharField(max_length=9, unique=True))
    index = migrations.AddIndex("card", models.Index(fields=["name"], name="by_name"))
    assert found(new, column, index) == []
    assert [b.step for b in found(column.__class__("book", "name", models.IntegerField()))] == [
        "AddField book.name"
    ]


def test_what_is_built_concurrently_is_alone_and_outside_of_a_transaction() -> None:
    one = ours.AddIndexConcurrently("book", INDEX)
    unique = ours.AddUniqueConcurrently("book", TITLE_ONE)
    assert found(one, atomic=False) == []
    assert found(unique, atomic=False) == []
    assert found(ours.DropKeyIndexesConcurrently({"book": ["room"]}), atomic=False) == []
    assert ["in a transaction" in b.problem for b in found(one)] == [True]
    assert ["in a transaction" in b.problem for b in found(unique)] == [True]
    assert [b.step for b in found(one, unique, atomic=False)] == ["atomic = False"]
    plain = found(postgres.AddIndexConcurrently("book", INDEX), atomic=False)
    assert ["killed midway" in b.problem for b in plain] == [True]
    assert [(e.lock, e.work) for e in effects(one, atomic=False)] == [
        (Lock.SHARE_UPDATE_EXCLUSIVE, Work.INDEX)
    ]


def test_a_constraint_is_validated_in_a_later_migration() -> None:
    added = postgres.AddConstraintNotValid("book", TITLE_SET)
    validated = postgres.ValidateConstraint("book", "title_set")
    assert found(validated) == []
    assert [b.step for b in found(added, validated)] == ["ValidateConstraint book.title_set"]


def test_a_migration_that_removes_does_nothing_else() -> None:
    removed = migrations.RemoveField("book", "pages")
    both = found(
        removed, add(models.IntegerField(null=True)), contract="Nothing has read it since release 1.4."
    )
    assert [b.step for b in both] == ["contract"]


def test_marks_that_let_nothing_through_are_refused() -> None:
    fine = add(models.IntegerField(null=True))
    assert ["nothing is wrong" in b.problem for b in found(fine, explained={"AddField book.extra": "x"})] == [
        True
    ]
    assert ["removes nothing" in b.problem for b in found(fine, contract="Since 1.4 unused.")] == [True]
    removed = migrations.RemoveField("book", "pages")
    assert ["since when" in b.problem for b in found(removed, contract="ok")] == [True]
    index = migrations.AddIndex("book", INDEX)
    assert ["no reason" in b.problem for b in found(index, explained={"AddIndex book.by_title": "ok"})] == [
        True
    ]


def test_migrations_of_this_tree_keep_the_rules() -> None:
    assert breaches() == []
    assert {"webhooks", "collections", "evaluations"} <= own_labels()
    assert not {"auth", "django_q", "account"} & own_labels()
    seen = effects_of([("webhooks", "0002_previous_secret")])["webhooks", "0002_previous_secret"]
    assert [(e.step, e.table, e.lock) for e in seen] == [
        ("AddField webhook.previous_secret_encrypted", "webhooks_webhook", Lock.ACCESS_EXCLUSIVE),
        ("AddField webhook.rotated_at", "webhooks_webhook", Lock.ACCESS_EXCLUSIVE),
    ]


def test_the_example_of_the_page_is_let_through_by_its_marks() -> None:
    space: dict[str, Any] = {}
    exec(block("docs/upgrading.md", "python"), space)  # noqa: S102 - our own page
    loader = MigrationLoader(None)
    for kind, app, mark in (("Migration", "jobs", "explained"), ("LaterMigration", "webhooks", "contract")):
        made = space[kind]("0009_x", app)
        read = Reader(made, loader.project_state(loader.graph.leaf_nodes(app))).read()
        assert judged(made, read) == []
        setattr(made, mark, type(getattr(made, mark))())
        assert len(judged(made, read)) == 1


def test_the_command_ends_with_1_and_names_each_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.StringIO(), io.StringIO()
    call_command("migrations_check", stdout=out)
    assert out.getvalue()
    planted = found(migrations.AddIndex("book", INDEX))
    monkeypatch.setattr(migrations_check, "breaches", lambda: planted)
    with pytest.raises(CommandError, match=r"1 step can't run .* docs/upgrading.md"):
        call_command("migrations_check", stderr=err)
    assert err.getvalue().startswith("shelf.0002_planted, AddIndex book.by_title: writes wait")

"""Every column that can hold text says what an erasure does to it."""

from __future__ import annotations

import pytest

from erasure.rules import Declared, _read, columns_of, declared, models_all, text_columns, undeclared
from tenancy.models import AuditEvent, User


def test_every_column_is_declared_once() -> None:
    assert undeclared() == []
    assert sum(1 for model in models_all() for _ in text_columns(model)) > 300


def test_a_new_column_is_noticed_and_treated_as_names(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {label: told for label, told in declared().items() if label != "tenancy.User"}
    known["tenancy.User"] = Declared(
        names=frozenset({"email", "first_name"}), codes=frozenset({"password", "language", "time_zone"})
    )
    monkeypatch.setattr("erasure.rules.declared", lambda: known)
    assert undeclared() == ["tenancy.User.last_name"]
    assert "last_name" in {f.name for f in columns_of(User, "names")}


@pytest.mark.parametrize("line", ["names: a; names: b", "names: a; codes: a", "people: a", "names"])
def test_a_declaration_that_cannot_be_read_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"x\.Y"):
        _read("x.Y", line)


def test_the_audit_trail_has_names() -> None:
    assert {"actor_name", "object_name", "data"} <= {f.name for f in columns_of(AuditEvent, "names")}

"""Transactions that a test opens around requests, as Django's own test cases do around tests."""

from __future__ import annotations

from django.db import transaction


def around_requests() -> transaction.Atomic:
    """Return a transaction that requests inside of it take for a test case's own.

    In any other a request that gives its connection back, as each does before its answer is sent, is an error.
    """
    atomic = transaction.Atomic(using=None, savepoint=True, durable=False)
    atomic._from_testcase = True  # type: ignore[attr-defined]
    return atomic

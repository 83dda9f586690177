"""A model leaves the memory when it is not used, never while it is, and comes back when it is wanted."""

from __future__ import annotations

import threading
import time
import weakref

import pytest

from apps.collections.embedders import kept as kept_module
from apps.collections.embedders.kept import KeptModel

LONG_S = 3600.0


class Model:
    """Stands for hundreds of megabytes."""


def test_model_is_loaded_once_and_shared_while_it_is_used() -> None:
    made: list[Model] = []

    def load() -> Model:
        made.append(Model())
        return made[-1]

    kept = KeptModel(load, idle_s=LONG_S)
    assert not kept.is_loaded
    with kept.use() as first, kept.use() as second:
        assert first is second
    with kept.use() as third:
        assert third is first
    assert len(made) == 1
    assert kept.is_loaded


def test_idle_model_is_freed_and_loaded_again_when_it_is_wanted() -> None:
    kept = KeptModel(Model, idle_s=0.001)
    with kept.use() as model:
        known = weakref.ref(model)
    del model
    kept.idle_wait()
    assert not kept.is_loaded
    assert known() is None
    with kept.use() as again:
        assert isinstance(again, Model)


def test_freed_memory_is_given_back_once_after_each_time_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed = threading.Semaphore(0)
    looks = 0

    class Watched(KeptModel[Model]):
        def _left_s(self) -> float:
            nonlocal looks
            looks += 1
            return super()._left_s()

    def noted() -> None:
        if (
            threading.current_thread() is kept._watch
        ):  # the process may hold other models, left by other tests
            trimmed.release()

    monkeypatch.setattr(kept_module, "memory_trim", noted)
    kept = Watched(Model, idle_s=LONG_S, quiet_s=0.001)
    for _ in range(3):
        before = looks
        with kept.use():
            while looks < before + 5:  # it is looked at, and in use
                time.sleep(0.001)
            assert not trimmed.acquire(blocking=False)
        trimmed.acquire()
        before = looks
        while looks < before + 5:  # it is looked at again, and nothing is done again
            time.sleep(0.001)
        assert not trimmed.acquire(blocking=False)
        assert kept.is_loaded


def test_model_in_use_is_not_idle_however_long_it_takes() -> None:
    kept = KeptModel(Model, idle_s=LONG_S)
    with kept.use():
        kept._used_at = -2 * LONG_S  # long ago by any clock
        assert kept._left_s() == LONG_S
        with kept.use():
            pass
        kept._used_at = -2 * LONG_S
        assert kept._left_s() == LONG_S  # the first one still holds it
    kept._used_at = -2 * LONG_S
    assert kept._left_s() <= 0


def test_next_use_tries_again_when_loading_fails() -> None:
    answers = [ValueError("damaged"), None]

    def load() -> Model:
        if error := answers.pop(0):
            raise error
        return Model()

    kept = KeptModel(load, idle_s=LONG_S)
    with pytest.raises(ValueError, match="damaged"), kept.use():
        pass
    assert not kept.is_loaded
    with kept.use() as model:
        assert isinstance(model, Model)

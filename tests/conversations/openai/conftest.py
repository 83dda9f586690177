"""The running product, for clients of OpenAI's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apps.collections.collection.services import collection_create
from apps.collections.documents.services import document_upload
from jobs.models import ACTIVE, Job
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import make_cast
from tests.conversations.openai.site import MODELS, SCOPES, SEARCHING, Site
from tests.fake_provider import running
from tests.later import later
from tests.servers import Stack, wait_for
from tests.shared_database import shared_database

transactional_db = shared_database("package")


@pytest.fixture(scope="module", autouse=True)
def _begin_empty() -> None:
    """Keep the rows of ``site``, which is there for all modules of this package and sweeps by itself."""


@pytest.fixture(scope="package")
def site(transactional_db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    logs = tmp_path_factory.mktemp("servers")
    with running() as (model_url, fake):
        cast = make_cast()
        stack = Stack(
            logs,
            GROUNDWORK_COMPATIBLE_BASE_URL=model_url,
            GROUNDWORK_COMPATIBLE_MODELS=",".join(m.removeprefix("compatible/") for m in MODELS),
            GROUNDWORK_DEFAULT_MODEL=SEARCHING,
        )
        try:
            stack.start()
            who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
            text = "The duty on lamps of heading 8539.50.00 is four percent. " * 20
            with tenant_scope(cast.tenant.pk):
                trade = collection_create(**who, name="Trade")
                document_upload(**who, collection=trade, name="lamps.txt", chunks=[text.encode()])
                _, key = api_key_create(**who, name="tests", scopes=SCOPES)
                waiting = Job.objects.filter(status__in=ACTIVE)
                wait_for(lambda: not waiting.exists(), "the document")
            client = later("openai").OpenAI(base_url=f"{stack.url}/api/v1", api_key=key, max_retries=0)
            yield Site(cast, client, fake, stack.url, key)
        finally:
            stack.stop()
            for log in logs.glob("*.log"):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")  # noqa: T201

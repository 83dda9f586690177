from django.apps import AppConfig


class ConcurrencyTestsConfig(AppConfig):
    """Lets a test hold the ingestion of one document open at a chosen point."""

    name = "tests.concurrency"
    label = "concurrency_tests"

    def ready(self) -> None:
        from tests.concurrency import holds, programs

        holds.install()
        programs.install()

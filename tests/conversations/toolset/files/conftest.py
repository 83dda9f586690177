"""A collection to write files into, as the tests of collections have it."""

from tests.collections.conftest import collection, embedder, member_client, storage  # noqa: F401 - fixtures

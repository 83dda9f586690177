"""The data directory that tests of erasures have too."""

from tests.erasure.conftest import home

__all__ = ["home"]

"""The fixtures of the in-process runs, for attacks on whole runs."""

from integration.conftest import data, one_thread, theatre

__all__ = ["data", "one_thread", "theatre"]

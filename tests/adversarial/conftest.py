"""The fixtures of the in-process runs, for attacks on whole runs."""

from support.run_fixtures import data, one_thread, run_factory

__all__ = ["data", "one_thread", "run_factory"]

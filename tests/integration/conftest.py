"""The fixtures of runs in one process."""

from support.run_fixtures import data, one_thread, run_factory

__all__ = ["data", "one_thread", "run_factory"]

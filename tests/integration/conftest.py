"""The fixtures of runs in one process, and of the command line against a chain."""

from support.network_fixtures import bench, network, text_data
from support.run_fixtures import data, one_thread, run_factory

__all__ = ["bench", "data", "network", "one_thread", "run_factory", "text_data"]

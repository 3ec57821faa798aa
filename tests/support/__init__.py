"""The shared parts of tests: factories, drivers, runs, assertions with names."""

"""What tests share: factories, drivers, runs, assertions with names."""

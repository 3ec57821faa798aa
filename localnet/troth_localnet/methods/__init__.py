"""The JSON-RPC methods, a module per subject; registry.py lists them all."""

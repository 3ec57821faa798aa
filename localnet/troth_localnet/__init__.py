"""A Solana network on one machine: the embedded chain, the validator runner, the process fleet.

Owns: running a chain for tests and demos, behind one launcher interface.
Never: knows what the coordinator program does, imports torch or the client.
Next: `svm.py` for the chain, `rpc.py` for JSON-RPC, `launcher.py` for callers.
"""

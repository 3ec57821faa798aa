"""Moving headers and payloads between participants, over the network.

Owns: when others may read which bytes, fetching from any holder, the embedded server.
Never: trusts a byte before it hashes to its address, nor a holder's word about the protocol.
Next: `base.py` for the interface, `blob_cache.py` for the kept bytes and their gate, and
`exchange.py` for the code that all wires share.
"""

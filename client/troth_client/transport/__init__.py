"""Moving headers and payloads between participants: the only door to other machines.

Owns: who may read what and when, fetching from any holder, the embedded server.
Never: trusts a byte before it hashes to its address, nor a holder's word about the protocol.
Next: `base.py` for the interface, `blob_cache.py` for what is kept and who may read it, and
`exchange.py` for what all ways of moving bytes share.
"""

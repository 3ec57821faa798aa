"""An archive: the ledger of a run, and every byte that an audit of it asks for.

Owns: what is kept, where it lies, what is missing. Never: believes a byte without its address, or
judges a header, an opening or a verdict: the audit does.
Next: `keeper.py`, which keeps; `folder.py` for the layout; `check.py` for reading one back.
"""

"""The files of a run: config, data manifest, tokenizer and shards, by the hashes on chain.

Owns: a folder with them, the fetch from others, and what is shown to others. Never: decides which
hashes are right; the Run account does, and the manifest names the rest.
Next: `folder.py` for the shards, `fetch.py` for the way here, `files.py` for the way out.
"""

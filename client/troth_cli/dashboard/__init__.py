"""The web page of `troth dashboard`: one run, on loopback, live by server-sent events.

Owns: the server, what it sends, the files of the page in `static/`.
Never: holds a key, signs, or loads anything from elsewhere.
Next: `server.py`; `static/app.js` for the page.
"""

"""anchorpy, behind the only module that imports it.

Owns: the texts of Anchor's own errors.
Never: needed to build an instruction or to read the chain; importing anchorpy costs 0.3 s, so it
happens on the first use.
Next: program_errors.py, which asks. The decision record 0013 says when this module goes.
"""


def framework_error_text(code: int) -> str | None:
    """Return what Anchor says about one of its own error codes (below 6000), or None."""
    from anchorpy.error import LangErrorMessage  # noqa: PLC0415  (0.3 s)

    text = LangErrorMessage.get(code)
    return None if text is None else str(text)

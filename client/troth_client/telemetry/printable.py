"""Texts that cannot steer a terminal: the one place where control characters are written out.

Owns: the rule. Error texts of RPC nodes, endpoints, names of runs and texts of models come from
strangers. They may hold escape sequences, C1 controls, marks that turn the direction of writing,
and line breaks that begin a line of somebody else's.
Never: prints. Next: `display.py`; `troth_cli/view/output.py` and `failures.py`, which print.
"""


def printable(text: str) -> str:
    """Return a text with every character that could steer a terminal written out.

    Line breaks stay: the text is ours, and parts of it went through `one_line`.
    """
    return "".join(one if one == "\n" or one.isprintable() else ascii(one)[1:-1] for one in text)


def one_line(value: object) -> str:
    """Return a value as text of one line; its line breaks are written out, too."""
    return printable(str(value)).replace("\n", "\\n")

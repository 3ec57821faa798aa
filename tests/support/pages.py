"""The commands that a page of the documents shows.

Owns: sections and their blocks. Never: runs a command. Next: reader.py, who types them.
"""

import re
from collections.abc import Mapping

TYPED = ("troth ", "export ")
"""Other lines show what a command prints."""


def filled(line: str, words: Mapping[str, str]) -> str:
    """The line with words replaced, as a person would: HOST, ports, an address that was printed."""
    for word, value in words.items():
        line = line.replace(word, value)
    return line


def commands_of(page: str, title: str) -> list[str]:
    """The command lines of the section whose title begins so, without their comments."""
    (section,) = (one for one in sections(page) if _title(one).startswith(title))
    return _lines(section)


def all_commands(page: str) -> list[str]:
    """The command lines of all sections, in their order."""
    return [line for section in sections(page) for line in _lines(section)]


def sections(page: str) -> list[str]:
    """The text of each section, with its title in the first line."""
    return re.split(r"^## ", page, flags=re.M)


def _title(section: str) -> str:
    return section.splitlines()[0]


def _lines(section: str) -> list[str]:
    blocks = re.findall(r"```\n(.*?)```", section, re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    return [re.split(r"\s+#\s", line)[0].strip() for line in lines if line.startswith(TYPED)]

"""Scripts of this repository as modules: tests ask their functions.

Owns: loading one by its path. Never: runs its `main`. Next: `scripts/`.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(path: str) -> ModuleType:
    """Return the module of a script, named by its path under `scripts`."""
    found = SCRIPTS / path
    spec = importlib.util.spec_from_file_location(found.stem, found)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

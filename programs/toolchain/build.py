#!/usr/bin/env python3
"""`python3 programs/toolchain/build.py COMMAND`: the toolchain without installing anything."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from troth_toolchain.cli import main

if __name__ == "__main__":
    sys.exit(main())

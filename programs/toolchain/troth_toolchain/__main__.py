"""`python -m troth_toolchain`: see `cli.py`."""

import sys

from troth_toolchain.cli import main

sys.exit(main())

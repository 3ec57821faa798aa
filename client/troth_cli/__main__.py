"""`python -m troth_cli` is `troth`.

Owns: nothing. Never: anything else. Next: `main.py`.
"""

import sys

from troth_cli.main import main

if __name__ == "__main__":
    sys.exit(main())

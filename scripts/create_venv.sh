#!/usr/bin/env bash
# usage: create_venv.sh DIR     makes a virtual environment with the first Python between 3.11 and 3.13 that works
set -euo pipefail
venv=$1
usable='import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
for python in ${PYTHON:-} python3.13 python3.12 python3.11 python3 python; do
  # A name on PATH may be a launcher for a version that is not installed: ask it, do not trust it.
  if "$python" -c "$usable" >/dev/null 2>&1; then
    echo "troth: creating $venv with $("$python" --version)" >&2
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --upgrade pip
    exit 0
  fi
done
cat >&2 <<'TEXT'
troth: no usable Python was found.
  expected: Python 3.11, 3.12 or 3.13 with venv and pip on PATH
  next:     install it (Debian: apt install python3 python3-venv), or name one: make demo PYTHON=/path/to/python3.12
TEXT
exit 1

"""What every test takes for granted of the process that it runs in.

Next: the folders beside this file, one per kind of test.
"""

import signal

import pytest

# A shell without job control starts its background commands with SIGINT ignored, and children
# inherit that: the tests that interrupt a process would wait for an end that never comes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Assertions in support say what they compared, as those of the tests do.
pytest.register_assert_rewrite("support")

"""The fixture that many unit tests share."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.audit_driver import AuditDriver


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator["AuditDriver"]:
    """A participant without a role of its own, on a chain that the test shows it."""
    # It loads PyTorch, which most tests do without.
    from support.audit_driver import AuditDriver  # noqa: PLC0415

    one = AuditDriver(tmp_path)
    yield one
    await one.close()

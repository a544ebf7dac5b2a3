"""Missing, deleted and another account's look exactly the same through every tool that takes an id."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist.archive.accounts import ensure_account
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from mempersist.ports import AccountId
from tests.rigs import writes
from tests.rigs.mcp import Client, client, principal
from tests.rigs.worlds import drain, memory_world

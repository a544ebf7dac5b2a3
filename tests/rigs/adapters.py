"""The adapters of a port as the parameters of its contract suite."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

_NEEDS_THE_RIG = "worker"


def adapters(names: Iterable[str]) -> list[object]:
    """The names in order; the Worker's own adapter runs with the tests that need its rig."""
    return [pytest.param(name, marks=pytest.mark.worker) if name == _NEEDS_THE_RIG else name for name in sorted(names)]

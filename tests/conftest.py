"""Modules of tests that run on every host of the service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rigs.adapters import adapters
from tests.rigs.hosts import HOSTS, Current


@pytest.fixture(autouse=True)
def host(request: pytest.FixtureRequest) -> Iterator[str]:
    """The host that this test runs on."""
    Current.name = getattr(request, "param", HOSTS[0])
    yield Current.name
    Current.opened.close()
    Current.name = HOSTS[0]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if getattr(metafunc.module, "EVERY_HOST", False):
        hosts = HOSTS[:1] if metafunc.definition.get_closest_marker("in_process") else HOSTS
        metafunc.parametrize("host", adapters(hosts), indirect=True)

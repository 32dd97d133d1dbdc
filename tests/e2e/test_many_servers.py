"""Many servers on one project, as when a developer has several clients open."""

from pathlib import Path

import pytest

from tests.support.client import COLIBRI
from torture.servers import together

SERVERS, CALLS = 16, 60


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(180)
def test_16_servers_started_at_once_on_no_database_share_one_unbroken_chain(tmp_path: Path) -> None:
    """Specification 9.13: no failed start, error or lost call; the trial `servers` does more."""
    clients = together(tmp_path, COLIBRI, CALLS, SERVERS)
    assert [len(client.receipts) for client in clients] == [CALLS] * SERVERS

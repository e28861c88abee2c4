"""A client of a Dask cluster that is closed, not left to the garbage collector, when it cannot connect.

Dask closes a client that is collected; where that happens while another one starts, both wait for ever for the lock of
the event loops (seen with distributed 2026.8).
"""

from __future__ import annotations

from typing import Any

import distributed


class DaskClient(distributed.Client):
    """A connection to a scheduler, which is made or closed."""

    def start(self, **options: Any) -> None:
        """Connect."""
        try:
            super().start(**options)
        except BaseException:
            self.close()
            raise

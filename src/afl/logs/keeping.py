"""Keeps the lines of one process: a spool, what ships it, and the spools that others have left."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path

from afl.kernel.errors import StoreUnavailable
from afl.kernel.working.health import LoopHealth
from afl.kernel.working.loops import BackgroundLoop
from afl.logs.leftovers import Leftover, adopt
from afl.logs.shipping import LINGER_SECONDS, Road, Shipment
from afl.logs.spool import Spool
from afl.logs.store import Positions

_log = logging.getLogger("afl.logs")
#: How often to look for spools that dead workers have left.
_SEARCH_SECONDS = 30.0
_AWAY_SECONDS = 0.5


class Keeper:
    """Ships from `start` to `stop`. Closes the spool and the road with itself, not the store."""

    def __init__(
        self,
        root: Path,
        spool: Spool,
        road: Road,
        positions: Positions,
        *,
        search_seconds: float = _SEARCH_SECONDS,
    ) -> None:
        """
        Args:
            root: where this and other workers of this machine have their spools.
        """
        self._root = root
        self.spool = spool
        self._road = road
        self._positions = positions
        self._shipment = Shipment(spool.id, spool.worker, spool.reader, road, positions)
        self._leftovers: list[tuple[Leftover, Shipment]] = []
        self._search_seconds = search_seconds
        self._searched_at = float("-inf")
        self._is_away = False
        self._is_ending = False
        self._freed = 0
        self._background = BackgroundLoop("log-shipping", self._ship)

    @property
    def health(self) -> LoopHealth:
        return self._background.health

    def start(self) -> None:
        self._background.start()

    def stop(self, timeout_seconds: float = 10.0) -> bool:
        """Closes all streams and ships what is left; tells whether all was stored in that time.

        What was not stays on the disk, for the next worker.
        """
        end = time.monotonic() + timeout_seconds
        # what others have left needs an open spool, in which to say what is lost
        self._is_ending = True
        self._background.stop(timeout_seconds)
        self.spool.close()
        done = False
        while not (done := self._shipment.stored >= self.spool.end) and time.monotonic() < end:
            time.sleep(min(self._ship(), LINGER_SECONDS))
        for leftover, _ in self._leftovers:
            leftover.release()
        self._road.close()
        if done:
            # another worker may be looking into it right now; all is stored, so whoever finds the
            # rest removes it
            shutil.rmtree(self.spool.folder, ignore_errors=True)
        self.spool.release()
        return done

    @property
    def unstored(self) -> int:
        """How many bytes of the own spool the store does not have, as far as is known."""
        return max(0, self.spool.end - self._shipment.stored)

    def _ship(self) -> float:
        try:
            wait = self._shipment.step(self.spool.end)
            if self._shipment.stored > self._freed:
                self._freed = self._shipment.stored
                self.spool.free(self._freed)
            if not self._is_ending:
                wait = min([wait, *self._ship_leftovers()])
        except StoreUnavailable as error:
            if not self._is_away:
                _log.warning("log lines stay on this disk for now: %s", error)
            self._is_away = True
            return _AWAY_SECONDS
        if self._is_away:
            _log.warning("log lines are on their way again")
        self._is_away = False
        return wait

    def _ship_leftovers(self) -> list[float]:
        now = time.monotonic()
        if now >= self._searched_at + self._search_seconds:
            self._searched_at = now
            for found in adopt(self._root, self.spool.id):
                _log.info("worker %s has left log lines, which are shipped now", found.worker)
                shipment = Shipment(
                    found.id, found.worker, found.reader, self._road, self._positions
                )
                self._leftovers.append((found, shipment))
        waits = []
        for leftover, shipment in list(self._leftovers):
            waits.append(shipment.step(leftover.end))
            if shipment.stored >= leftover.end:
                self.spool.declare_lost(shipment.open_streams)
                leftover.remove()
                self._leftovers.remove((leftover, shipment))
        return waits

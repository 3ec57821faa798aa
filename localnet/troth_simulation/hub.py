"""A hub of a run inside one process: the code of `troth hub` on the memory network.

Owns: its task, and its folder, which outlives it. Never: opens a socket or sleeps.
Next: `in_process.py`, whose members reach it under its name.
"""

import asyncio
from pathlib import Path
from typing import NoReturn

from troth_client.hub.follow import Follower
from troth_client.hub.keeping import BoundedFiles, KeptSets
from troth_client.hub.states import KeptStates
from troth_client.state.audit_tracker import AuditTracker
from troth_client.telemetry.events import EventList
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.bounded import BoundedBlobs
from troth_simulation.in_process import InProcessRun

MAX_BYTES = 2**30
KEEP_ROUNDS = 16


class SimulatedHub:
    """Start it, stop it as kill -9 would, and start it again: its folder stays."""

    def __init__(self, run: InProcessRun, name: str, folder: Path) -> None:
        self.name = name
        self.cache = BlobCache(BoundedBlobs(folder, MAX_BYTES))
        self._run = run
        self._folder = folder
        self._task: asyncio.Task[NoReturn] | None = None

    def start(self) -> None:
        """Take part from this slot on."""
        run = self._run
        self.cache = BlobCache(BoundedBlobs(self._folder, MAX_BYTES))
        sets = KeptSets(self._folder / "sets", MAX_BYTES)
        self.cache.show(sets)
        config = run.settings.config
        hashes = config.config_hash(), config.manifest_digest()
        files = BoundedFiles(self._folder / "files", hashes, MAX_BYTES)
        self.cache.show_files(files)
        states = KeptStates(self._folder / "states", files, hashes[0], MAX_BYTES)
        self.cache.show_states(states)
        follower = Follower(
            client=run.client,
            run=run.at.run,
            cache=self.cache,
            sets=sets,
            states=states,
            tracker=AuditTracker(run.client, run.at, run.runtime, EventList()),
            keep_rounds=KEEP_ROUNDS,
            round_bytes=MAX_BYTES,
        )
        run.network.join(self.name, self.cache)
        self._task = run.runtime.start(self._follow(follower), self.name)

    async def stop(self) -> None:
        """End at once; what is in its memory is lost."""
        task, self._task = self._task, None
        self._run.network.leave(self.name)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _follow(self, follower: Follower) -> NoReturn:
        while True:
            await follower.take(await self._run.client.snapshot(self._run.at.run))
            await self._run.runtime.wait()
            await asyncio.sleep(0)  # alone in the run it would never let the loop go on

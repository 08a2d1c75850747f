"""When a row folds and when it is tracked: one expression on one length."""

from __future__ import annotations

from replaylife.lifecycle.config import CacheConfig


class Planner:
    """Decides, from lengths alone, what a forward step must do."""

    def __init__(self, cache: CacheConfig) -> None:
        self._track_point = cache.track_point
        self._tracks = cache.track == "snapshot"
        self.grid = cache.grid
        self._ring_length = cache.ring_length if cache.replayssm else None

    def is_track_point(self, length_after: int) -> bool:
        """Whether a row that ends a step at ``length_after`` tokens is tracked."""
        return length_after % self._track_point == 0

    def checkpoint_in(self, start: int, end: int, *, decode: bool) -> int | None:
        """Return the length in ``(start, end]`` at which a row leaves a checkpoint, if there is one.

        For a decode row that is a track point (the last one, where a verify window passes several), for a
        prefill chunk its last grid point, both counted from token 0 and never from the row's own start.
        """
        if decode and not self._tracks:
            return None
        last = end - end % (self._track_point if decode else self.grid)
        return last if last > start else None

    def force_flush(self, length_after: int) -> bool:
        """Whether a row must fold in mid-ring: exactly when it is tracked."""
        return self.is_track_point(length_after)

    def must_fold(self, pending: int, *, forced: bool) -> bool:
        """Whether a row folds after a step that left ``pending`` records in its ring."""
        return self._ring_length is not None and (forced or pending == self._ring_length)

    def must_make_room(self, pending: int, window: int) -> bool:
        """Whether a slot folds before a verify window, because its records do not fit behind ``pending``."""
        return self._ring_length is not None and pending + window > self._ring_length

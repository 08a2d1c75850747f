"""Views of a run: pure functions from outcomes and snapshots to rich renderables.

Nothing here decides a rule of the lifecycle. What is red is red because an invariant said so.
"""

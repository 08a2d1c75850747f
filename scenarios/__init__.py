"""Scenarios shipped with replaylife."""

"""The explorer: every state that a small world can reach, breadth-first, through the engine's own code."""

"""The random legal player: moves, choices, situations, and the shortest way to a violation."""

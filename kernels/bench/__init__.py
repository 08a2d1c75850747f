"""Side-by-side measurements of decode steps: contenders, float64 errors, times, tile choices.

Numbers come as ratios of one run on one machine. Importing this package loads nothing heavy.
"""

"""The tiny hybrid network, the witness, the float64 oracle, and the forwards over the pool's tensors.

Everything here imports torch; nothing outside imports it before a backend other than ``none`` is chosen.
"""

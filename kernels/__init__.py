"""Tensor kernels of a replayed recurrent state, each as a Triton kernel beside its plain-torch twin.

`Kernels.load` picks a backend. Importing this package imports neither torch nor Triton.
"""

from .dispatch import Kernels

__all__ = ["Kernels"]

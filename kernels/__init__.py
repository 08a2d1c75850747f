"""Tensor kernels of a replayed recurrent state, each as a Triton kernel beside its plain-torch twin.

`Kernels.load` picks a backend, a ring format, and tuned or reference kernels. Importing this package imports
neither torch nor Triton.
"""

from .dispatch import Kernels
from .ring import REFERENCE, RingFormat

__all__ = ["REFERENCE", "Kernels", "RingFormat"]

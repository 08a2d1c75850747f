"""Bytes that a decode step must move: counted, not measured. Pure arithmetic; imports nothing heavy."""

from dataclasses import dataclass

from .tiles import Gate


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sizes of one layer, in bytes a number: `state`, `d`, `key` of the ring, `io` of inputs and outputs.

    All results are bytes of one row (request) and layer, mean over the positions of a ring of `ring` records.
    """

    gate: Gate
    H: int
    HV: int
    K: int
    V: int
    ring: int
    state: int = 4
    d: int = 4
    key: int = 2
    io: int = 2

    @property
    def state_bytes(self) -> int:
        """One state."""
        return self.HV * self.V * self.K * self.state

    @property
    def record_bytes(self) -> int:
        """One record of the ring: delta vectors, keys, fp32 gates."""
        gates = self.HV * (self.K if self.gate == "kda" else 1)
        return self.HV * self.V * self.d + self.H * self.K * self.key + 4 * gates

    @property
    def token_bytes(self) -> int:
        """Inputs and outputs of one token."""
        gates = self.HV * (self.K if self.gate == "kda" else 1)
        return (2 * self.H * self.K + 2 * self.HV * self.V + gates + self.HV) * self.io

    @property
    def packed(self) -> float:
        """Packed decode: the state in and out."""
        return 2 * self.state_bytes + self.token_bytes

    @property
    def read(self) -> float:
        """Replay without its flush: the state in, half a ring in, one record out."""
        return self.state_bytes + (self.ring + 1) / 2 * self.record_bytes + self.token_bytes

    @property
    def fused(self) -> float:
        """Replay that writes the state every `ring` steps while it has it: the least that replay can move."""
        return self.read + self.state_bytes / self.ring

    @property
    def apart(self) -> float:
        """Replay with a fold of its own, which reads state and ring once more."""
        return self.fused + self.state_bytes / self.ring + self.record_bytes

"""A network whose state spells out which tokens it has absorbed, and how often.

Keys are one-hot by position, values are the token's bits, nothing decays and beta is one half: a token
absorbed once leaves half its value in its column, twice three quarters, never nothing. The convolution
passes its last tap through, so its window holds the last W-1 tokens themselves. Inputs are scaled by 32,
where SiLU and the L2 norm are exact in fp32.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.model.mixer import Mixer, MixerInputs
from replaylife.lifecycle.model.weights import LayerWeights
from replaylife.lifecycle.protocol import CannotExpress
from replaylife.pool.tensors import PoolTensors

SCALE = 32.0
_NO_DECAY = -200.0


class WitnessCode:
    """How a (token, position) pair is written into q, k and v, and read back out of a state.

    Each value head of each layer carries the token's bits behind a presence bit, xored with a salt of its
    own, so that swapped heads or layers do not read as the same tokens.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.bits = max(1, (config.vocab - 1).bit_length())
        self.capacity = config.heads * config.key_dim
        if config.value_dim < self.bits + 1:
            raise CannotExpress(
                f"model.value_dim: {config.value_dim}, need at least {self.bits + 1} in a witness run "
                f"(a presence bit and {self.bits} bits for a vocabulary of {config.vocab})"
            )
        if config.layers * config.value_heads > 1 << self.bits:
            raise CannotExpress(
                f"model.vocab: {config.vocab}, need more than {config.layers * config.value_heads // 2} in a "
                "witness run (a salt of its own for each value head of each layer)"
            )

    def salt(self, layer: int, head: int) -> int:
        """Return the pattern that the token ids of this layer and value head are xored with."""
        return (37 * (layer * self.config.value_heads + head) + 11) % (1 << self.bits)

    def mixed(self, tokens: Sequence[int], positions: Sequence[int], layer: int) -> torch.Tensor:
        """Return the convolution's inputs for these tokens: ``[T, conv_dim]``, fp32 on the CPU.

        Raises :class:`CannotExpress` when a position has no column.
        """
        config = self.config
        if max(positions) >= self.capacity:
            raise CannotExpress(
                f"witness: position {max(positions)}, need less than heads * key_dim = {self.capacity}; "
                "shorten the conversation or raise model.key_dim"
            )
        keys = torch.zeros(len(tokens), self.capacity)
        keys[torch.arange(len(tokens)), torch.tensor(positions)] = SCALE
        values = torch.zeros(len(tokens), config.value_heads, config.value_dim)
        for row, token in enumerate(tokens):
            for head in range(config.value_heads):
                word = token ^ self.salt(layer, head)
                values[row, head, 0] = SCALE
                for bit in range(self.bits):
                    values[row, head, 1 + bit] = SCALE * (word >> bit & 1)
        return torch.cat([keys, keys, values.flatten(start_dim=1)], dim=1)

    def read(self, values: torch.Tensor, layer: int, head: int) -> int | None:
        """Return the token spelled by ``values [value_dim]`` (multiples of the presence bit), if any."""
        present = float(values[0])
        if present <= 0:
            return None
        word = 0
        for bit in range(self.bits):
            value = float(values[1 + bit])
            if value not in (0.0, present):
                return None
            word |= int(value == present) << bit
        return word ^ self.salt(layer, head)


class WitnessNetwork:
    """Feeds (token, position) to every layer alike; there are no norms, no projections and no logits."""

    def __init__(self, config: ModelConfig, tensors: PoolTensors) -> None:
        self._config, self._device = config, tensors.device
        self._code, self._mixer = WitnessCode(config), Mixer(config, tensors)
        self._weights = self._plain_weights()

    def prefill(self, tokens: Sequence[int], start: int, slot: int) -> None:
        """Run ``tokens`` at positions from ``start`` through ``slot``, all layers."""
        positions = range(start, start + len(tokens))
        for layer in range(self._config.layers):
            self._mixer.prefill(layer, self._weights, self._inputs(tokens, positions, layer), slot)

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        slots: torch.Tensor,
        write_pos: torch.Tensor | None,
    ) -> None:
        """Run one token per row, all layers."""
        for layer in range(self._config.layers):
            inputs = self._inputs(tokens, positions, layer)
            self._mixer.decode(layer, self._weights, inputs, slots, write_pos)

    def verify(
        self,
        tokens: Sequence[Sequence[int]],
        positions: Sequence[Sequence[int]],
        slots: torch.Tensor,
        write_pos: torch.Tensor,
        lengths: torch.Tensor,
    ) -> None:
        """Run a window per row, all layers; ``tokens`` and ``positions`` are padded to the longest."""
        rows, window = len(tokens), len(tokens[0])
        flat = [token for row in tokens for token in row], [place for row in positions for place in row]
        for layer in range(self._config.layers):
            inputs = self._inputs(*flat, layer).windows(rows, window)
            self._mixer.verify(layer, self._weights, inputs, slots, write_pos, lengths)

    def _inputs(self, tokens: Sequence[int], positions: Sequence[int], layer: int) -> MixerInputs:
        mixed = self._code.mixed(tokens, positions, layer).to(self._device)
        gate = self._weights.dt_bias.shape
        return MixerInputs(
            mixed=mixed,
            a=torch.zeros(len(tokens), *gate, device=self._device),
            b=torch.zeros(len(tokens), self._config.value_heads, device=self._device),
        )

    def _plain_weights(self) -> LayerWeights:
        config = self._config
        conv_dim = 2 * self._code.capacity + config.value_heads * config.value_dim
        conv = torch.zeros(conv_dim, config.conv_width)
        conv[:, -1] = 1.0
        gate = (config.value_heads,) if config.gate == "gdn" else (config.value_heads, config.key_dim)
        nothing = torch.zeros(0)
        return LayerWeights(
            qkv=nothing,
            conv=conv,
            a=nothing,
            b=nothing,
            A_log=torch.zeros(config.value_heads),
            dt_bias=torch.full(gate, _NO_DECAY),
            out=nothing,
        ).to(self._device, torch.float32)

"""Sizes of public hybrid models: what their published configuration says of the recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass

from replaylife.pool.shape import DType, Gate, PoolShape


@dataclass(frozen=True, slots=True)
class Preset:
    """The recurrent layers of one public model.

    ``layers`` are those with a recurrent state, full attention not counted; ``heads`` the key heads, of
    ``key_dim`` numbers each; ``value_heads`` of ``value_dim``. ``source`` is where they were published.
    """

    name: str
    gate: Gate
    layers: int
    heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_width: int
    source: str

    def shape(
        self,
        *,
        ring_length: int | None,
        tensor_parallel: int = 1,
        slots: int = 2,
        state_dtype: DType = "fp32",
        conv_dtype: DType = "bf16",
        ring_dtype: DType = "fp32",
        ring_key_dtype: DType | None = None,
    ) -> PoolShape:
        """Return the pool of one of ``tensor_parallel`` ranks: heads are divided, all else is not.

        Raises ``ValueError`` where the key heads cannot be divided evenly.
        """
        if tensor_parallel < 1 or self.heads % tensor_parallel:
            divisors = [str(n) for n in range(1, self.heads + 1) if self.heads % n == 0]
            raise ValueError(
                f"tensor_parallel: {tensor_parallel}, need a divisor of the {self.heads} key heads of "
                f"{self.name} ({', '.join(divisors)})"
            )
        return PoolShape(
            layers=self.layers,
            slots=slots,
            heads=self.heads // tensor_parallel,
            value_heads=self.value_heads // tensor_parallel,
            key_dim=self.key_dim,
            value_dim=self.value_dim,
            conv_width=self.conv_width,
            ring_length=ring_length,
            gate=self.gate,
            state_dtype=state_dtype,
            conv_dtype=conv_dtype,
            ring_dtype=ring_dtype,
            ring_key_dtype=ring_key_dtype,
        )


def _qwen(name: str, layers: int, value_heads: int) -> Preset:
    """A model of the Qwen3.5 family or Qwen3-Next: three of four layers are Gated DeltaNet, heads of 128."""
    linear = layers - layers // 4
    return Preset(name, "gdn", linear, 16, value_heads, 128, 128, 4, f"https://huggingface.co/Qwen/{name}")


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _qwen("Qwen3-Next-80B-A3B-Instruct", 48, 32),
        _qwen("Qwen3.5-397B-A17B", 60, 64),
        _qwen("Qwen3.5-122B-A10B", 48, 64),
        _qwen("Qwen3.5-35B-A3B", 40, 32),
        _qwen("Qwen3.5-27B", 64, 48),
        _qwen("Qwen3.5-9B", 32, 32),
        _qwen("Qwen3.5-4B", 32, 32),
        _qwen("Qwen3.5-2B", 24, 16),
        _qwen("Qwen3.5-0.8B", 24, 16),
        Preset(
            "Kimi-Linear-48B-A3B-Instruct",
            "kda",
            20,
            32,
            32,
            128,
            128,
            4,
            "https://huggingface.co/moonshotai/Kimi-Linear-48B-A3B-Instruct/blob/main/config.json",
        ),
    )
}

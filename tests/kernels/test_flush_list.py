"""The list of due rows, and a whole step that folds by it: no value is read back on the way."""

import itertools

import pytest
import torch

RING = 4


def test_full_rings_and_forced_rows_are_listed_in_order_and_nothing_else(s, kernels):
    slots = s.ints(5, -1, 2, 7, 3, 1)
    cursors = s.ints(RING, RING, 2, 1, 0, RING)
    force = s.ints(0, 1, 0, 1, 1, 0)
    listed, counts, rows = kernels.flush_list(slots, cursors, force, RING)
    assert rows.tolist() == [3]
    assert listed.tolist() == [5, 7, 1, -1, -1, -1]
    assert counts.tolist()[:3] == [RING, 1, RING]


def test_nothing_due_and_an_empty_batch_give_an_empty_list(s, kernels):
    listed, _, rows = kernels.flush_list(s.ints(3, -1), s.ints(1, RING), s.ints(0, 1), RING)
    assert (listed.tolist(), rows.tolist()) == ([-1, -1], [0])
    assert kernels.flush_list(s.ints(), s.ints(), s.ints(), RING)[2].tolist() == [0]


@pytest.mark.parametrize("seed", range(8))
def test_the_twins_list_the_same(s, twins, seed):
    generator = torch.Generator().manual_seed(seed)
    draw = [torch.randint(low, high, (33,), generator=generator).to(s.DEVICE, torch.int32)
            for low, high in ((-1, 50), (0, RING + 1), (0, 2))]  # fmt: skip
    ours, theirs = (kernels.flush_list(*draw, RING) for kernels in twins)
    assert 0 < ours[2].item() < 33
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_a_fold_stops_at_the_length_that_only_the_device_knows(s, twins, tiny):
    params = s.gates(tiny)
    for kernels in twins:
        if kernels.ring.keys == "normalised" and kernels.mode != "torch":
            continue  # the reference fold takes lists whose length the host knows
        pool = s.Pool(tiny, slots=4, ring=RING)
        s.fill(kernels, pool, [1, 2, 3], [2, 2, 2], tiny, params)
        cut, full = pool.copy(), pool.copy()
        slots, counts = s.ints(3, 1, 2), s.ints(2, 2, 2)
        kernels.fold(**cut.tensors(), slots=slots, counts=counts, rows=s.ints(2))
        kernels.fold(**full.tensors(), slots=slots, counts=counts)
        assert s.same_bits(cut.temporal[:, [0, 2]], pool.temporal[:, [0, 2]])
        assert s.same_bits(cut.temporal[:, [1, 3]], full.temporal[:, [1, 3]])
        assert not s.same_bits(full.temporal[:, 2], pool.temporal[:, 2])


class Step:
    """Decode of all layers, cursors, list and fold, over static buffers: what a captured graph replays."""

    def __init__(self, s, kernels, shape, rows, layers):
        self.kernels, self.layers = kernels, layers
        self.pool = s.Pool(shape, slots=rows + 1, ring=RING, layers=layers)
        self.params = s.gates(shape)
        self.x = [s.tokens(shape, rows, seed=0) for _ in range(layers)]
        self.slots, self.cursors, self.force = (s.ints(*[0] * rows) for _ in range(3))
        self.out = [None] * layers

    def load(self, s, shape, slots, cursors, force, step):
        for buffer, values in ((self.slots, slots), (self.cursors, cursors), (self.force, force)):
            buffer.copy_(s.ints(*values))
        for layer, x in enumerate(self.x):
            for name, value in s.tokens(shape, len(slots), seed=100 + 10 * step + layer).items():
                x[name].copy_(value)

    def run(self):
        for layer in range(self.layers):
            self.out[layer] = self.kernels.replay_decode(
                **self.x[layer],
                **self.params,
                **self.pool.layer(layer),
                write_pos=self.cursors,
                slots=self.slots,
            )
        due, counts, rows = self.kernels.flush_list(self.slots, self.cursors + 1, self.force, RING)
        self.kernels.fold(**self.pool.tensors(), slots=due, counts=counts, rows=rows)


def schedule(steps):
    """Slots, cursors and forced rows of each step: padding moves about, positions are mixed."""
    held = {1: 0, 2: 1, 3: 0}
    for step in range(steps):
        slots = [(1, 2, 3, -1), (-1, 3, 1, -1), (2, 1, -1, 3)][step % 3]
        force = [int(slot == 1 and step % 5 == 4) for slot in slots]
        yield slots, [held.get(slot, 0) for slot in slots], force, step
        for slot, forced in zip(slots, force, strict=True):
            if slot > 0:
                held[slot] = 0 if forced or held[slot] + 1 == RING else held[slot] + 1


@pytest.mark.parametrize("layers", [2])
def test_a_step_with_mixed_positions_forced_folds_and_padding_equals_its_twin(s, twins, tiny, layers):
    """On a GPU the Triton step is captured once in a CUDA graph and replayed."""
    plain, fast = twins
    if fast.ring.keys == "normalised":
        pytest.skip("the reference fold takes lists whose length the host knows")
    steps = [Step(s, kernels, tiny, 4, layers) for kernels in (plain, fast)]
    for step in steps:
        s.fill(step.kernels, step.pool, [2], [1], tiny, step.params, layers=layers)
    replay = steps[1].run
    if s.ON_CUDA:
        steps[1].load(s, tiny, [-1] * 4, [0] * 4, [0] * 4, 0)
        steps[1].run()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            steps[1].run()
        replay = graph.replay
    compared = 0
    for slots, cursors, force, number in itertools.islice(schedule(12), 12):
        for step in steps:
            step.load(s, tiny, slots, cursors, force, number)
        steps[0].run()
        replay()
        for layer in range(layers):
            real = [row for row, slot in enumerate(slots) if slot >= 0]
            assert s.relative_error(steps[1].out[layer][real], steps[0].out[layer][real]) < 2e-6
        assert s.relative_error(steps[1].pool.temporal, steps[0].pool.temporal) < 2e-6
        compared += 1
    assert compared == 12

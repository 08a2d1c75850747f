"""Request logs played through the lifecycle: reading, batching by arrival time, counting, sweeping."""

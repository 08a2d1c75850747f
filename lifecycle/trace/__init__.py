"""Recorded runs: written line by line, read with bounded memory, and judged again from what they say.

``lines`` and ``changes`` are the format, ``codec`` and ``schema`` its JSON, both derived from type hints;
``writer`` and ``reader`` move it; ``structure``, ``flow``, ``succession``, ``transcripts`` and ``checker``
judge it.
"""

"""Puts a page together: markup, style, program and data in one file that loads nothing.

The data stand in a script element of type ``application/json``, every ``<``, ``>`` and ``&`` in them escaped,
and the program writes them as text only. A content security policy allows exactly the style and the program
that are here, by their hashes, and no request to anywhere.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from replaylife.view.book import Book
from replaylife.view.page.data import page_data

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def build_page(book: Book) -> str:
    """Return the page of a trace."""
    return assemble(page_data(book))


def assemble(data: dict[str, Any]) -> str:
    """Return the page for data of :func:`page_data`."""
    style, program = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(program)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    marks = {
        "policy": policy,
        "title": escape(f"{data['name']} - replaylife"),
        "style": style,
        "data": embedded(data),
        "program": program,
    }
    page = _part("page.html")
    before, *pieces = page.split("{{")
    return before + "".join(
        marks[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces)
    )  # one pass: what is put in is not looked through again


def embedded(data: Any) -> str:
    """Return JSON that can stand inside a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for char, code in _ESCAPES.items():
        text = text.replace(char, code)
    return text.encode("utf-8", "replace").decode("utf-8")


def _part(name: str) -> str:
    return (files("replaylife.view.page") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()

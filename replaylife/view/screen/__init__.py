"""The full-screen viewer: what keys do, how a frame is laid out, and the terminal it is drawn on."""

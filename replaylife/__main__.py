"""``python -m replaylife`` is the command ``replaylife``."""

from replaylife.cli import main

if __name__ == "__main__":
    main(prog_name="replaylife")

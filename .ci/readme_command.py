"""Print the README's N-th ``bash`` block (from 1), so that CI runs exactly what a new user pastes."""

import re
import sys
from pathlib import Path

blocks = re.findall(r"^```bash\n(.*?)^```", Path("README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
print(blocks[int(sys.argv[1]) - 1])

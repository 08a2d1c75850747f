"""SGLang's own cache classes under our protocol: which lines are theirs is said in docs/sglang.md."""

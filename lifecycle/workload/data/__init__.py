"""The excerpt of a public request log that is shipped, with its notice."""

"""The scenario language: schema, loader, player, expectations."""

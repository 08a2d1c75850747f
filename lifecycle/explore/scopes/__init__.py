"""Scopes shipped with replaylife: small worlds that `explore` plays to the end."""

"""Keyed streams on Spark: a million of them, each with a state and a certificate of its own."""

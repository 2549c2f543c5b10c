"""Conformance checks for parts, the library's own and its users'."""

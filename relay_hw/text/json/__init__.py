"""Reads and writes modules as JSON, by the schema of JSON.md."""

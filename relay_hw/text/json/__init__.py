"""Modules as JSON, by the schema of JSON.md: reader and writer."""

"""Reads and writes programs as the JSON of TVM's save_json."""

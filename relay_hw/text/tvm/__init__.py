"""Programs as the JSON that TVM's save_json writes: reader and writer."""

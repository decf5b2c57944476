"""General helpers: crash-safe files, untrusted documents, child processes, progress, quoting."""

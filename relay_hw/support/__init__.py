"""What knows nothing of networks or hardware: durable files, documents from anyone, child processes, quoting."""

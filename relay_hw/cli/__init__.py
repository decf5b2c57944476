"""The command line: `relay-hw`."""

"""Other systems' names over this one: scripts that were written for them need only their imports changed."""

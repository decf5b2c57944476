"""Projects for boards that need vendor tools: Vivado, Quartus. Neither tool has run these projects yet."""

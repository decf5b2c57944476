"""Projects for boards whose tools are their makers': Vivado, Quartus. What is written here was never run by them."""

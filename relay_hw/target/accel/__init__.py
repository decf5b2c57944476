"""The target `accel`, this package's accelerator: partition rules, programs, resident weights, devices."""

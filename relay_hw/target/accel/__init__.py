"""The accelerator of this package as a target: what it takes, its programs, what stays on the device, its devices."""

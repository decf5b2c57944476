"""TVM's BYOC (bring your own codegen): its registries, and targets made of what scripts register.

`registry` takes what scripts register, `known` has it, `regions` reads partitioned modules, `target` runs code
generators as a target.
"""

"""What runs beside the accelerator: host functions as flat programs, evaluated by numpy or compiled by TVM."""

"""Host functions as flat programs, evaluated by numpy or compiled by TVM."""

"""A device by its name, through the self-test that every device has."""

from relay_hw.cli.main import main

assert main(["selftest", "--device", "pair", "--config", "tiny", "--programs", "2"]) == 0
print("as wanted")

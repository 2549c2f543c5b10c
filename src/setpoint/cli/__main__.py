"""`python -m setpoint.cli`: the command line where no script is installed."""

from setpoint.cli import main

main()

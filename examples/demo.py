"""The demonstration of `setpoint demo`, in the terminal alone: it needs numpy and setpoint.

A year and a half of hourly electricity demand that drifts, a model that learns as it goes, late
labels, and 90 % intervals with and without setpoint. The whole of it is a page of code to read, in
`setpoint.jobs.demo`; `setpoint demo` also writes a report.
"""

from setpoint.jobs import demo

if __name__ == "__main__":
    print(demo())

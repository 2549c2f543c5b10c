"""Scripts beside the tests that are not to be imported for their doctests."""

collect_ignore = ["faults.py", "moved_clock", "postgres.py", "serving.py"]

"""`troth bench`: the method's parts on this machine, beside what others do.

Next: `parts.py` measures; `clock.py` times, `sizes.py` has the shapes, `reduce.py` the all-reduce
of two processes, and `table.py` makes a table and a picture of the numbers.
"""

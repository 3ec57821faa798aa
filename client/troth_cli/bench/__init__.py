"""`troth bench`: the method's parts on this machine, beside what others do.

sizes.py    shapes of models, and whether one fits
clock.py    several ways in turns, medians
parts.py    the parts of one model, and what each is compared with
reduce.py   dense all-reduce between two processes
table.py    the numbers as a table and as a picture
"""

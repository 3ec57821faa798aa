"""Pictures of a run: `collect.py` makes the numbers, `draw.py` the picture, `page.py` a page."""

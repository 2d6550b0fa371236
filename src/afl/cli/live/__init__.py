"""A run as it goes on, for people: the tree of its steps.

`lines` makes the lines of the tree, `views` shows them (redrawn on a terminal, one line for each
step that has ended in a pipe), `following` looks at the run until it has ended. rich is loaded only
when a terminal is drawn on.
"""

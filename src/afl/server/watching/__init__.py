"""Tells those who watch a page when it has changed.

Each topic has a mark, a name of the state that it is in. One watcher for each server reads the
marks of what somebody watches, and tells those that are others than before. What models say while
they say it comes past the rows, and is told as it is.
"""

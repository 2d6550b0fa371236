"""Runs and their steps as pages show them: rows of the engine, put into words."""

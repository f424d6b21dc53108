"""Foliot inside web frameworks. Each module imports its framework, which the application brings along."""

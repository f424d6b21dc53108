"""The worker node: claims runs, executes them, beats while it lives, and writes how they ended."""

"""The built web UI: its files, and the pages that a browser asks for below `/ui/`. Its sources are in `ui/`."""

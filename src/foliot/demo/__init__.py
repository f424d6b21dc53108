"""A small shop that never closes: `foliot up --demo` fills an installation of its own with it, to look around in."""

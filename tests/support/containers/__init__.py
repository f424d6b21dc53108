"""Real containers, from images that are made of Debian's packages: no registry is needed."""

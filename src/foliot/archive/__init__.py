"""History beyond its retention: written to S3 or a directory, found and queried there."""

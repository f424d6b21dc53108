"""Message brokers: they carry hints about ready runs. PostgreSQL decides what starts."""

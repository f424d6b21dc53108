"""PostgreSQL: the only package that contains SQL or speaks to the database."""

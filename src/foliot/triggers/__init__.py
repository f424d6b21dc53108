"""When next? Pure arithmetic of time: no I/O, no clock. Instants are whole seconds since 1970 in UTC."""

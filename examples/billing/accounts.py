"""The customers, and the amount that each of them is charged."""

CUSTOMERS, CENTS = 200, 999

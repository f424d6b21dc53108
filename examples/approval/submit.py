"""Submits an expense and prints the id of its run."""

import sys

from expenses import expense

print(expense.submit(purpose=sys.argv[1], amount=int(sys.argv[2])).id)

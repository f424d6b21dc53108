"""Requests to other servers, with checked addresses."""

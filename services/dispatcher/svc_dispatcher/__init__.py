"""Dispatcher service: hosts tuners, assessors and advisors, one child process per experiment."""

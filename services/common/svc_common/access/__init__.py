"""Access control: authentication, roles, permissions of calls, TLS, and the audit trail."""

"""Who may call what: roles, tokens and certificates, the table of permissions, the audit trail."""

"""Named algorithms: the built-in ones, registrations of users, and validation of arguments."""

"""Generator of the reference pages: `python -m docs.generator OUTPUT`.

Everything that the program itself knows (public names, algorithms, commands, configuration fields,
REST routes, gRPC methods) is written from the program, so that no page can disagree with it.
"""

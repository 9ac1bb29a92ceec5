"""Process of one strategy, started by the NAS service: `python -m nni.nas.host`.

Only such a process opens the document of an exploration; see `nni.nas.host.document`.
"""

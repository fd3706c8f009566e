"""Binary protocol extensions (field 32767): read and write them by structure or metadata path, in frames or containers.
"""

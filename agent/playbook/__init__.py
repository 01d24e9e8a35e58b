"""YAML to a frozen Playbook, or a list of problems with file, line and column. Pure: text in, values out."""

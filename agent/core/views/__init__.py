"""What people see of a state: pure values, drawn by the screen, printed by the headless run, told by the report."""

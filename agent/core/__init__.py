"""The pure core: events in, state and commands out. It knows no clock, file, socket or task."""

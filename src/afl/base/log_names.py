"""The names of logs that are kept with the runs they are about."""

#: What handlers say through their context.
HANDLER_LOG = "afl.handler"
#: What turns do. Nobody hears it but whoever keeps the lines of runs.
TURN_LOG = "afl.turn"

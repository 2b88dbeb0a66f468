"""terminal.py START PAUSES COMMAND...: runs COMMAND on a terminal of its own, as a person does.

After START it waits for the first of PAUSES (seconds, "0.1,0.5"), types Ctrl-C, waits for the second one,
types Ctrl-C again, and so on. START is "lines:COUNT:FILE", when FILE has so many lines, or
"processes:COUNT", when so many processes called mpi4dl answer signals: before that the system is still
loading them. Prints what the terminal shows; ends with COMMAND's exit code, or with 128 plus the signal
that ended it, as a shell says it."""
import glob
import os
import pty
import select
import signal
import sys
import time

start, pauses, command = sys.argv[1].split(":"), sys.argv[2], sys.argv[3:]
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell starts what is in the background without it
process, terminal = pty.fork()
if process == 0:
    os.execvp(command[0], command)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # not there yet, or no longer
        return ""


def answers_signals(folder):
    name, _, rest = read(folder + "/stat").partition(") ")
    if not name.endswith("(mpi4dl") or int(rest.split()[3]) != process:  # of another session
        return False
    caught = read(folder + "/status").partition("SigCgt:")[2].split()
    return bool(caught) and int(caught[0], 16) >> (signal.SIGINT - 1) & 1 == 1


def started():
    if start[0] == "lines":
        return read(start[2]).count("\n") >= int(start[1])
    return sum(map(answers_signals, glob.glob("/proc/[0-9]*"))) >= int(start[1])


waiting = [float(pause) for pause in pauses.split(",") if pause]
due = None  # when the next Ctrl-C is typed
while True:
    if due is None and waiting and started():
        due = time.monotonic() + waiting.pop(0)
    if due is not None and time.monotonic() >= due:
        os.write(terminal, b"\x03")
        due = time.monotonic() + waiting.pop(0) if waiting else None
    wait = 0.02 if due is None else max(0.0, min(0.02, due - time.monotonic()))
    if select.select([terminal], [], [], wait)[0]:
        try:
            shown = os.read(terminal, 65536)
        except OSError:  # the terminal of a process that is gone
            break
        if not shown:
            break
        sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
        sys.stdout.flush()
code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
sys.exit(code if code >= 0 else 128 - code)

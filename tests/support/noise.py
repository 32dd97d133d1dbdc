"""Statements that say "noise" where only the protocol may speak: on stdout, in every way."""

NOISE = {
    "print": "print('noise')",
    "a flushed print": "print('noise', flush=True)",
    "the original stdout": "sys.__stdout__.write('noise')",
    "bytes": "sys.stdout.buffer.write(b'noise')",
    "a warning": "import warnings; warnings.warn('noise')",
    "a logger": "import logging; logging.basicConfig(stream=sys.stdout); logging.error('noise')",
    "the descriptor": "os.write(1, b'noise')",
    "a file on the descriptor": "open(1, 'w', closefd=False).write('noise')",
    "a child process": "import subprocess; subprocess.run(['echo', 'noise'])",
    "a shell": "os.system('echo noise')",
    "a fork": "os.fork() or (os.write(1, b'noise'), os._exit(0)); os.wait()",
    "C": "import ctypes; c = ctypes.CDLL(None); c.puts(b'noise'); c.fflush(None)",
    "an uncaught exception": "raise SystemExit('noise')",
}

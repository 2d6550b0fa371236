"""Attempts to get out of the sandbox, as Python code.

Each finds `world`, which tells what there is outside, and `libc`. It has got out if it sets
`result` to something true: what it read, or proof of what it did. Whatever an attempt raises means
that it did not get through.
"""

from __future__ import annotations

#: Comes before each attempt.
TOOLS = """
import ctypes, errno, fcntl, glob, os, pathlib, select, shutil, signal, socket, stat, struct
import subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
world = inputs

def read(path):
    # a pipe of somebody else must not hold it up
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(fd, 1000).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)

def readable(paths):
    return [path for path in paths if read(path)]

def connects(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    try:
        with socket.socket(family, kind) as connection:
            connection.settimeout(2)
            connection.connect(address)
            return True
    except OSError:
        return False

def live_on():
    code = f"import time; time.sleep(600) # {world['marker']}"
    os.execv(sys.executable, [sys.executable, "-c", code])

def ok(value):
    return value == 0
"""

ESCAPES: dict[str, str] = {
    # Reading what is not theirs
    "read_shadow": 'result = readable(["/etc/shadow", "/etc/passwd", "/etc/hostname"])',
    "read_planted_secret": 'result = read(world["secret"])',
    "read_by_subclasses": """
loaders = [each for each in ().__class__.__base__.__subclasses__() if hasattr(each, "get_data")]
for each in loaders:
    try:
        result = each("x", world["secret"]).get_data(world["secret"])
    except Exception:
        pass
""",
    "read_by_codecs": """
import json
result = json.codecs.builtins.open(world["secret"]).read()
""",
    "read_by_frames": """
frame = sys._getframe()
while frame:
    opener = frame.f_builtins["open"]
    try:
        result = opener(world["secret"]).read()
    except OSError:
        pass
    frame = frame.f_back
""",
    "read_by_proc_root": """
result = readable(
    f"/proc/{pid}/{place}{world['secret']}"
    for pid in ("self", "1", "2", str(os.getppid()))
    for place in ("root", "cwd", "root/..", "cwd/../../../..")
)
""",
    "read_by_dotdot": 'result = read("../../../../../../../.." + world["secret"])',
    "read_by_symlink": """
os.symlink(world["secret"], "/tmp/link")
result = read("/tmp/link")
""",
    "read_by_hard_link": """
os.link(world["secret"], "/tmp/hard")
result = read("/tmp/hard")
""",
    "read_by_proc_fd": """
for path in glob.glob("/proc/[0-9]*/fd/*"):
    result = result or world["marker"] in read(path)
""",
    "read_home_folders": """
places = [*glob.glob("/root/*"), *glob.glob("/home/*"), *glob.glob("/srv/*"), *glob.glob("/var/*")]
result = places
""",
    "read_other_roots": 'result = sorted(set(os.listdir("/")) - set(world["root"]))',
    "read_kernel_memory": 'result = readable(["/dev/mem", "/dev/kmem", "/proc/kcore"])',
    "read_kernel_log": 'result = readable(["/dev/kmsg", "/proc/kmsg"])',
    "read_sys": 'result = os.path.isdir("/sys/kernel") or os.path.isdir("/sys/class")',
    "read_run_sockets": 'result = os.path.exists("/run") or os.path.exists("/var/run")',
    "open_by_handle": """
handle = struct.pack("Ii", 8, 1) + struct.pack("Q", 2)
fd = libc.syscall(304, libc.open(b"/usr", 0), handle, 0)
result = fd >= 0
""",
    # Secrets of the worker
    "read_own_environment": 'result = [k for k, v in os.environ.items() if world["marker"] in v]',
    "read_all_environments": """
found = [read(path) for path in glob.glob("/proc/[0-9]*/environ")]
result = any(world["marker"] in each for each in found)
""",
    "read_all_command_lines": """
lines = [read(path) for path in glob.glob("/proc/[0-9]*/cmdline")]
result = any(world["marker"] in each for each in lines)
""",
    "use_inherited_descriptors": """
found = []
for fd in range(3, 1024):
    try:
        target = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        continue
    if not target.startswith("pipe:"):
        found.append(target)
result = found
""",
    "take_descriptors_of_others": """
for pid in range(1, 10):
    if pid == os.getpid():
        continue
    pidfd = libc.syscall(434, pid, 0)
    for fd in range(0, 12):
        if pidfd >= 0 and libc.syscall(438, pidfd, fd, 0) >= 0:
            result = True
""",
    # Writing where others look
    "write_outside": """
for folder in (world["folder"], "/etc", "/usr", "/usr/bin", "/", "/dev", "/home", "/proc/sys"):
    try:
        with open(f"{folder}/planted", "w") as file:
            file.write("x")
        result = folder
    except OSError:
        pass
""",
    "change_system_files": """
result = []
for path in ("/usr/bin/env", "/usr/bin/python3", "/etc/ld.so.cache", "/bin/sh"):
    for change in (lambda path: open(path, "r+b"), lambda path: os.chmod(path, 511), os.unlink):
        try:
            change(path)
            result.append(path)
        except OSError:
            pass
""",
    "preload_a_library": """
for path in ("/etc/ld.so.preload", "/usr/lib/evil.so"):
    try:
        open(path, "w").close()
        result = path
    except OSError:
        pass
""",
    "remount_writable": """
flags = 32 | 4096
result = any(ok(libc.mount(b"none", path, None, flags, None)) for path in (b"/", b"/usr", b"/dev"))
""",
    "fill_the_disk": """
written = 0
block = b"x" * (1 << 20)
for number in range(64):
    try:
        with open(f"/tmp/{number}", "wb") as file:
            for _ in range(16):
                written += file.write(block)
    except OSError:
        break
result = written > (200 << 20)
""",
    "fill_shared_memory": """
written = 0
for folder in ("/dev/shm", "/dev", "/", "/run"):
    try:
        for number in range(10):
            with open(f"{folder}/{number}", "wb") as file:
                written += file.write(b"x" * (32 << 20))
    except OSError:
        pass
result = written > (200 << 20)
""",
    "write_to_terminals": """
for path in ("/dev/tty", "/dev/console", "/dev/tty1", "/dev/pts/0"):
    try:
        os.close(os.open(path, os.O_RDWR))
        result = path
    except OSError:
        pass
""",
    "type_into_terminals": """
for fd in (0, 1, 2):
    for request in (0x5412, 0x541C):
        try:
            fcntl.ioctl(fd, request, b"x")
            result = True
        except OSError as error:
            if error.errno != errno.EPERM:
                result = f"not refused by the filter: {error}"
""",
    "open_raw_devices": """
for name in ("sda", "vda", "nvme0n1", "loop0", "kvm", "fuse", "net/tun"):
    try:
        os.close(os.open(f"/dev/{name}", os.O_RDONLY))
        result = name
    except OSError:
        pass
""",
    "make_devices": """
for kind, device in ((stat.S_IFBLK, os.makedev(8, 0)), (stat.S_IFCHR, os.makedev(1, 1))):
    try:
        os.mknod("/tmp/device", kind | 0o666, device)
        result = True
    except OSError:
        pass
""",
    # Other processes
    "see_other_processes": """
result = [name for name in os.listdir("/proc") if name.isdigit() and int(name) > 100]
""",
    "see_the_victim": """
result = world["marker"] in read(f"/proc/{world['victim']}/cmdline")
""",
    "kill_the_worker": """
for pid in (world["pid"], world["victim"]):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
""",
    "kill_everything": """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    os.kill(-1, signal.SIGTERM)
except OSError:
    pass
""",
    "trace_others": """
result = [pid for pid in (1, os.getppid(), world["pid"]) if libc.ptrace(16, pid, 0, 0) == 0]
""",
    "trace_a_child": """
child = os.fork()
if child == 0:
    time.sleep(5)
    os._exit(0)
result = libc.ptrace(16, child, 0, 0) == 0
os.kill(child, signal.SIGKILL)
""",
    "read_memory_of_others": """
for pid in (1, world["pid"]):
    try:
        with open(f"/proc/{pid}/mem", "rb") as file:
            file.seek(0x400000)
            result = bool(file.read(8))
    except (OSError, ValueError):
        pass
""",
    "read_memory_by_call": """
data = ctypes.create_string_buffer(8)
vector = (ctypes.c_void_p * 2)(ctypes.addressof(data), 8)
result = libc.process_vm_readv(os.getppid(), vector, 1, vector, 1, 0) > 0
""",
    "outlive_the_sandbox": """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        live_on()
    os._exit(0)
time.sleep(0.5)
""",
    "outlive_the_timeout": """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    live_on()
time.sleep(600)
""",
    # The network
    "connect_to_loopback": 'result = connects(("127.0.0.1", world["tcp"]))',
    "connect_to_databases": """
result = [port for port in (5432, 6379, 4222, 22, 80) if connects(("127.0.0.1", port))]
""",
    "connect_over_ipv6": 'result = connects(("::1", world["tcp"]), socket.AF_INET6)',
    "connect_to_metadata": 'result = connects(("169.254.169.254", 80))',
    "ask_a_name_server": """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
    # what arrives on the machine itself, whoever has sent it finds there
    query.sendto(b"x", ("127.0.0.1", world["udp"]))
    for server in ("8.8.8.8", "1.1.1.1", "169.254.169.253"):
        try:
            query.sendto(b"x", (server, 53))
            result = server
        except OSError:
            pass
""",
    "connect_to_abstract_socket": """
result = connects(b"\\0" + world["abstract"].encode(), socket.AF_UNIX)
""",
    "connect_to_socket_file": 'result = connects(world["socket"], socket.AF_UNIX)',
    "see_other_interfaces": 'result = [name for _, name in socket.if_nameindex() if name != "lo"]',
    "send_raw_packets": """
for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (17, socket.SOCK_RAW, 768)):
    try:
        socket.socket(family, kind, protocol).close()
        result = True
    except OSError:
        pass
""",
    # The kernel
    "become_root": """
for attempt in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0])):
    try:
        attempt()
        result = True
    except OSError:
        pass
result = result or os.getuid() == 0
""",
    "use_setuid_programs": """
for name in ("su", "sudo", "mount", "passwd", "newgrp", "chsh", "pkexec", "newuidmap"):
    path = shutil.which(name)
    if path and os.stat(path).st_mode & stat.S_ISUID:
        told = subprocess.run([path, "--help"], capture_output=True, preexec_fn=None)
status = read("/proc/self/status")
result = "NoNewPrivs:\\t1" not in status
""",
    "make_setuid_program": """
shutil.copy("/bin/sh", "/tmp/sh")
os.chmod("/tmp/sh", 0o6755)
told = subprocess.run(["/tmp/sh", "-p", "-c", "id -u"], capture_output=True, text=True)
result = told.stdout.strip() == "0"
""",
    "have_capabilities": """
sets = [line.split() for line in read("/proc/self/status").splitlines() if line.startswith("Cap")]
result = [name for name, value in sets if int(value, 16)]
""",
    "make_user_namespace": "result = ok(libc.unshare(0x10000000))",
    "make_namespaces_by_clone": """
stack = ctypes.create_string_buffer(1 << 16)
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000):
    pid = libc.syscall(56, flag | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        result = hex(flag)
""",
    "make_namespaces_by_clone3": """
arguments = struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
pid = libc.syscall(435, arguments, len(arguments))
if pid == 0:
    os._exit(0)
result = pid > 0
""",
    "join_namespaces": """
for pid in ("1", str(os.getppid())):
    for name in ("mnt", "net", "user", "pid"):
        try:
            fd = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
        except OSError:
            continue
        if ok(libc.setns(fd, 0)):
            result = name
""",
    "mount_things": """
os.mkdir("/tmp/m")
result = [kind for kind in (b"proc", b"sysfs", b"tmpfs", b"overlay", b"devtmpfs")
          if ok(libc.mount(kind, b"/tmp/m", kind, 0, None))]
""",
    "mount_by_new_calls": """
result = libc.syscall(430, b"tmpfs", 0) >= 0 or libc.syscall(428, -100, b"/", 1) >= 0
""",
    "unmount_things": """
result = [path for path in (b"/proc", b"/usr", b"/tmp", b"/dev") if ok(libc.umount2(path, 2))]
""",
    "change_the_root": """
os.mkdir("/tmp/r")
result = ok(libc.chroot(b"/tmp/r")) or ok(libc.syscall(155, b"/tmp", b"/tmp"))
""",
    "use_keyrings": """
result = libc.syscall(248, b"user", b"k", b"secret", 6, -3) >= 0 or libc.syscall(250, 0, -3, 0) >= 0
""",
    "load_bpf": "result = libc.syscall(321, 5, ctypes.create_string_buffer(128), 128) >= 0",
    "use_io_uring": "result = libc.syscall(425, 8, ctypes.create_string_buffer(120)) >= 0",
    "use_userfaultfd": "result = libc.syscall(323, 1) >= 0",
    "watch_performance": """
result = libc.syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0) >= 0
""",
    "load_modules": """
result = ok(libc.syscall(175, b"x", 1, b"")) or ok(libc.syscall(313, 0, b"", 0))
""",
    "set_the_clock": "result = ok(libc.settimeofday(struct.pack('qq', 1, 0), None))",
    "set_the_host_name": "result = ok(libc.sethostname(b'evil', 4))",
    "trigger_sysrq": """
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe"):
    try:
        with open(path, "w") as file:
            file.write("h")
        result = path
    except OSError:
        pass
""",
    "call_as_32_bits": """
# memory that can be run, with `int 0x80` for `getpid` of the 32-bit machine
import mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("b814000000cd80c3"))
pointer = ctypes.addressof(ctypes.c_char.from_buffer(code))
result = ctypes.CFUNCTYPE(ctypes.c_int)(pointer)() > 0
""",
    "call_by_x32": "result = libc.syscall(0x40000000 + 39) > 0",
    # Taking all there is
    "fork_bomb": """
first = os.getpid()
for _ in range(12):
    try:
        os.fork()
    except OSError:
        pass
time.sleep(1)
if os.getpid() != first:
    os._exit(0)
count = len([name for name in os.listdir("/proc") if name.isdigit()])
result = count > 64
""",
    "thread_bomb": """
import threading
made = 0
try:
    for _ in range(500):
        threading.Thread(target=time.sleep, args=(0.5,), daemon=True).start()
        made += 1
except RuntimeError:
    pass
result = made > 64
""",
    "memory_bomb": """
kept = []
while len(kept) < 100:
    kept.append(bytearray(100 << 20))
result = True
""",
    "memory_without_a_process": """
result = libc.syscall(319, b"x", 0) >= 0 or libc.syscall(29, 0, 1 << 20, 0o1666) >= 0
""",
    "large_file": """
with open("/tmp/large", "wb") as file:
    os.posix_fallocate(file.fileno(), 0, 1 << 30)
result = True
""",
    "raise_limits": """
import resource
for name in ("AS", "NPROC", "FSIZE", "NOFILE"):
    kind = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(kind)
    try:
        resource.setrlimit(kind, (hard * 2, hard * 2))
        result = True
    except (OSError, ValueError):
        pass
""",
    "burn_the_processor": """
while True:
    pass
""",
}

#: Those that need a sandbox of their own, and how long each may take: what they do stays, or only
#: the end of their time ends them.
ALONE = {
    "fill_the_disk": 30.0,
    "fill_shared_memory": 30.0,
    "kill_everything": 30.0,
    "outlive_the_sandbox": 30.0,
    "outlive_the_timeout": 2.0,
    "fork_bomb": 30.0,
    "thread_bomb": 30.0,
    "memory_bomb": 30.0,
    "burn_the_processor": 2.0,
}
#: Those that only the end of their time ends.
ENDLESS = ("outlive_the_timeout", "burn_the_processor")

#: Makes many attempts, each in a process of its own, and tells what became of each.
MANY = """
import json, shutil

def outcome_of(code):
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        scope = {**globals(), "result": None}
        try:
            exec(compile(code, "attempt", "exec"), scope)
            told = ["tried", repr(scope["result"]) if scope["result"] else ""]
        except BaseException as error:
            told = ["raised", repr(error)]
        os.write(write_end, json.dumps(told).encode()[:60000])
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        told = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        told = json.dumps(["killed", signal.Signals(os.WTERMSIG(status)).name])
    for name in os.listdir("/tmp"):
        path = f"/tmp/{name}"
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    return json.loads(told)

result = {name: outcome_of(code) for name, code in world["attempts"].items()}
"""

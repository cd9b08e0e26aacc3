"""Links of their own between the ranks of a program: of a set speed, or of a set delay.

Every rank has a network namespace of Linux to itself with one interface. Where links have a speed, the
interfaces meet in a bridge, and the kernel lets each rank send so many bits a second, to a rank at the other
end of a slower link fewer. Where they have a delay, a process passes packets on from one interface to
another, each so long after it came. So the machine's cores are idle while a message is on its way, as they
are with a real network. Needs root and iproute2; without links nothing of it is used.
"""

import contextlib
import ctypes
import dataclasses
import fcntl
import heapq
import multiprocessing
import os
import select
import struct
import subprocess
import time

import torch.multiprocessing as mp

INTERFACE = "eth0"
LIMIT_S = 60  # for a rank to start


@dataclasses.dataclass(frozen=True)
class Network:
    """The links between the ranks."""

    mbit: int = 0  # a second that a rank sends; 0 where links have a delay
    slower: tuple = ()  # (rank, rank, mbit) for each link that is slower, both ways
    delay_us: int = 0


def enter(network, rank, scratch):
    """Called by a rank before it communicates: moves it to its network, and gives its interface."""
    if network is None:
        return "lo"
    _isolate()
    _write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")
    _write(os.path.join(scratch, f"pid{rank}"), str(os.getpid()))
    _wait_for(os.path.join(scratch, "linked"))
    return INTERFACE


def start_processes(network, main, arguments, world, method, scratch):
    """Starts main(rank, *arguments) on as many processes, links them, and waits for their end."""
    if network is None:
        mp.start_processes(main, args=arguments, nprocs=world, start_method=method)
        return
    _isolate()  # the network before is gone with its last process
    context = mp.start_processes(main, args=arguments, nprocs=world, start_method=method, join=False)
    with _linked(network, world, scratch):
        while not context.join():
            pass


@contextlib.contextmanager
def _linked(network, world, scratch):
    pids = []
    for rank in range(world):
        file = os.path.join(scratch, f"pid{rank}")
        _wait_for(file)
        with open(file) as f:
            pids.append(f.read())
    router = None
    if network.delay_us:
        router = multiprocessing.get_context("fork").Process(
            target=_route, args=([_tunnel(pid) for pid in pids], network.delay_us / 1e6), daemon=True)
        router.start()
    else:
        _run("ip link add bridge0 type bridge")
        _run("ip link set bridge0 up")
        for rank, pid in enumerate(pids):
            _run(f"ip link add port{rank} type veth peer name {INTERFACE} netns {pid}")
            _run(f"ip link set port{rank} master bridge0 up")
    for rank, pid in enumerate(pids):
        _run(f"ip address add {_address(rank)}/24 dev {INTERFACE}", pid)
        _run(f"ip link set {INTERFACE} up", pid)
        if network.mbit:
            _limit(network, rank, pid)
    _write(os.path.join(scratch, "linked"), "")
    try:
        yield
    finally:
        if router:
            router.terminate()
            router.join()


def _limit(network, rank, pid):
    """Lets a rank send at the speed of its links."""
    _run(f"tc qdisc add dev {INTERFACE} root handle 1: htb default 1", pid)
    speeds = {1: network.mbit}
    for a, b, mbit in network.slower:
        if rank in (a, b):
            other = a + b - rank
            speeds[2 + other] = mbit
    for number, mbit in speeds.items():
        _run(f"tc class add dev {INTERFACE} parent 1: classid 1:{number} htb rate {mbit}mbit quantum 65536", pid)
        if number > 1:
            _run(f"tc filter add dev {INTERFACE} parent 1: protocol ip u32 match ip dst {_address(number - 2)}/32 "
                 f"flowid 1:{number}", pid)


# The delay


def _tunnel(pid):
    """Makes the interface of a rank whose packets are read and written here."""
    tunnel = os.open("/dev/net/tun", os.O_RDWR)
    set_interface, without_header = 0x400454CA, 0x1001
    fcntl.ioctl(tunnel, set_interface, struct.pack("16sH22x", b"tunnel0", without_header))
    _run(f"ip link set tunnel0 mtu 60000 name {INTERFACE} netns {pid}")
    return tunnel


def _route(tunnels, delay_s):
    """Passes packets on, each so long after it came."""
    due = []
    number = 0
    while True:
        timeout = max(due[0][0] - time.monotonic(), 0) if due else None
        for tunnel in select.select(tunnels, [], [], timeout)[0]:
            try:
                packet = os.read(tunnel, 65536)
            except OSError:  # the rank has ended, and its interface with it
                return
            number += 1
            heapq.heappush(due, (time.monotonic() + delay_s, number, packet))
        while due and due[0][0] <= time.monotonic():
            packet = heapq.heappop(due)[2]
            to = packet[19] - 1 if len(packet) > 19 and packet[0] >> 4 == 4 else len(tunnels)
            if to < len(tunnels):
                with contextlib.suppress(OSError):
                    os.write(tunnels[to], packet)


# The machine


def _address(rank):
    return f"10.77.0.{rank + 1}"


def _isolate():
    """Gives this process a network namespace of its own, in which only its loopback interface is up."""
    new_network = 0x40000000
    if ctypes.CDLL(None, use_errno=True).unshare(new_network) != 0:
        raise OSError(ctypes.get_errno(), "a network of its own needs root")
    _run("ip link set lo up")


def _run(command, pid=None):
    prefix = f"nsenter -t {pid} -n " if pid else ""
    subprocess.run((prefix + command).split(), check=True)


def _write(file, text):
    with open(file + ".part" if not file.startswith("/proc") else file, "w") as f:
        f.write(text)
    if not file.startswith("/proc"):
        os.rename(file + ".part", file)


def _wait_for(file):
    end = time.monotonic() + LIMIT_S
    while not os.path.exists(file):
        if time.monotonic() > end:
            raise TimeoutError(f"{file} did not come in {LIMIT_S} s")
        time.sleep(0.01)

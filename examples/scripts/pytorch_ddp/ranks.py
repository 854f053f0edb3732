"""Starts the ranks of one machine by forking, so that torch is loaded once; under torchrun this process is one."""
import os
import signal
import socket


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(main, world_size):
    """Calls main() in `world_size` processes that have torchrun's variables.

    The exit status: 1 if any of them fails.
    """
    if "RANK" in os.environ:
        main()
        return 0
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(_free_port()))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("USE_LIBUV", "0")  # Debian 13's torch has none
    ranks = []
    for rank in range(world_size):
        pid = os.fork()
        if pid == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size))
            return main()
        ranks.append(pid)
    failed = False
    while ranks:
        pid, status = os.wait()
        ranks.remove(pid)
        if status != 0 and not failed:
            failed = True
            for other in ranks:  # they would wait for it
                os.kill(other, signal.SIGTERM)
    return 1 if failed else 0

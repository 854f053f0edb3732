// TCP ports at which the ranks of a training job meet.
//
// A port is only probed, because the ranks could not bind a port that dsat holds. So another program may still take it
// first. Threading: safe from any thread. Errors: free_port throws dsat::Error.
#ifndef DSAT_BASE_PORTS_H_
#define DSAT_BASE_PORTS_H_

#include <cstdint>

namespace dsat {

// The range lies below the kernel's default range for outgoing connections, which could take a port at any time.
inline constexpr uint16_t kFirstPort = 20000, kLastPort = 32767;

// The port after `port`, in a circle.
constexpr uint16_t next_port(uint16_t port) { return port == kLastPort ? kFirstPort : static_cast<uint16_t>(port + 1); }
// The port at which this process begins its search. Processes begin at different ports, in containers of one machine
// too: each of them sees a port as free until another one binds it.
uint16_t first_port_of_process();

// Can a program listen on this port, on every address of this machine?
bool port_is_free(uint16_t port);

// A free port of the range. A process gets every port once before it gets one again.
uint16_t free_port();

}  // namespace dsat

#endif  // DSAT_BASE_PORTS_H_

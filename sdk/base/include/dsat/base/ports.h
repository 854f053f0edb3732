// TCP ports at which the ranks of a training meet.
//
// A port can only be probed: held, the ranks could not take it. So another program may still take it in between.
// Threading: safe from any thread. Errors: free_port throws dsat::Error.
#ifndef DSAT_BASE_PORTS_H_
#define DSAT_BASE_PORTS_H_

#include <cstdint>

namespace dsat {

// Below the kernel's default range for outgoing connections, any of which could take a port between probe and use.
inline constexpr uint16_t kFirstPort = 20000, kLastPort = 32767;

// The one after `port`; after the last of the range its first.
constexpr uint16_t next_port(uint16_t port) { return port == kLastPort ? kFirstPort : static_cast<uint16_t>(port + 1); }
// Where this process begins. Processes that share a machine, in containers too, begin at different places, since each
// sees the others' ports as free until they are bound.
uint16_t first_port_of_process();

// Can this port be listened on, on every address of this machine?
bool port_is_free(uint16_t port);

// A port of the range that is free. A process gets each of them once before any of them again.
uint16_t free_port();

}  // namespace dsat

#endif  // DSAT_BASE_PORTS_H_

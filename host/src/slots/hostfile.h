// Reads hosts and slots in DeepSpeed's forms: hostfiles, and the filters --include and --exclude.
// Threading: pure except for reading the file. Errors: dsat::Error, one line with FILE:LINE or the option.
#ifndef DSAT_HOST_SLOTS_HOSTFILE_H_
#define DSAT_HOST_SLOTS_HOSTFILE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsat::host {

// A line of a hostfile: "worker-1 slots=4".
struct HostEntry {
  std::string name;
  int slots = 0;
  int line = 0;
};

// Skips comments (#), blank lines, and the "max_slots=8" of other launchers. Throws: no such file, no host, a host
// twice, no slots, anything else.
std::vector<HostEntry> read_hostfile(const std::filesystem::path& file);
// Uses `text` if the file's text is known already.
std::vector<HostEntry> read_hostfile(const std::filesystem::path& file, const std::optional<std::string>& text);
// Reads only the text, because a pipe can be read only once.
std::string read_hostfile_text(const std::filesystem::path& file);
// `name` is the file's name in messages.
std::vector<HostEntry> parse_hostfile(std::string_view text, const std::string& name);

// A node of "worker-0@worker-1:0,2".
struct NodeFilter {
  std::string host;
  std::vector<std::string> slots;  // as typed: indices or UUIDs; empty: all
};

// `option` is the filter's name in messages.
std::vector<NodeFilter> parse_node_filters(std::string_view text, const std::string& option);

// Whether the host is written as USER@NAME. The deepspeed launcher's --include cannot name such a host.
bool names_a_user(const std::string& host);

// Whether the name means this machine: localhost, a loopback address, or its own host name with or without domain. The
// user of USER@NAME does not count.
bool is_this_machine(const std::string& host);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_HOSTFILE_H_

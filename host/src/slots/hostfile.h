// Hosts and their slots as DeepSpeed's users write them: hostfiles, and the filters --include and --exclude.
//
// Threading: pure but for reading the file. Errors: dsat::Error, one line with FILE:LINE or the option.
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

// Comments (#) and blank lines are passed over, and so is what other launchers add: "max_slots=8". Throws: no such
// file, no host at all, a host twice, no slots, anything else.
std::vector<HostEntry> read_hostfile(const std::filesystem::path& file);
// The same where its text is known already, and else of the file.
std::vector<HostEntry> read_hostfile(const std::filesystem::path& file, const std::optional<std::string>& text);
// Its text alone. A pipe gives it once.
std::string read_hostfile_text(const std::filesystem::path& file);
// The same of its text; `name` stands in messages.
std::vector<HostEntry> parse_hostfile(std::string_view text, const std::string& name);

// One node of "worker-0@worker-1:0,2".
struct NodeFilter {
  std::string host;
  std::vector<std::string> slots;  // as typed: indices or UUIDs; empty: all
};

// Reads a filter; `option` is how it is called in messages.
std::vector<NodeFilter> parse_node_filters(std::string_view text, const std::string& option);

// Does this name mean the machine that this program runs on? localhost, a loopback address, its own host name with or
// without its domain.
bool is_this_machine(const std::string& host);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_HOSTFILE_H_

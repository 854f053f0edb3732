#include "slots/hostfile.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <system_error>

#include "base/printable_text.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

// More than any machine has: a slip of the keyboard, not a host.
constexpr int kMostSlots = 4096;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool starts_with(std::string_view text, std::string_view head) { return text.substr(0, head.size()) == head; }

std::string shown(const std::string& line) {
  const std::vector<std::string> lines = printable_lines(line);
  return lines.empty() ? "" : lines.front().substr(0, 80);
}

// `words`: a line that is neither blank nor a comment. The message of a failure lacks its place.
Result<HostEntry> parse_entry(const std::vector<std::string>& words, const std::string& line) {
  const Status malformed =
      Status::invalid("'" + shown(line) + "' is no host: write NAME slots=N, such as worker-1 slots=4");
  constexpr std::string_view kSlots = "slots=";
  if (words.size() < 2 || !starts_with(words[1], kSlots)) return malformed;
  for (size_t i = 2; i < words.size(); ++i) {
    if (!starts_with(words[i], "max_slots=") && !starts_with(words[i], "max-slots=")) return malformed;
  }
  HostEntry entry;
  entry.name = words[0];
  const std::string number = words[1].substr(kSlots.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), entry.slots);
  if (number.empty() || end != number.data() + number.size() || error != std::errc()) {
    if (error != std::errc::result_out_of_range) return malformed;
    entry.slots = kMostSlots + 1;
  }
  if (entry.slots < 1 || entry.slots > kMostSlots) {
    return Status::invalid(entry.name + " has slots=" + shown(number) + ": give 1 to " + std::to_string(kMostSlots) +
                           ", or remove the line");
  }
  if (entry.name.find_first_of(":@,=") != std::string::npos || entry.name[0] == '-') return malformed;
  return entry;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::string own_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Result<std::vector<HostEntry>> read_hostfile(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) return Status::invalid("hostfile " + file.string() + ": is a folder");
  const auto text = read_file(file);
  if (!text)
    return Status::invalid("hostfile " + file.string() + ": cannot be read: give a file of lines NAME slots=N");
  std::vector<HostEntry> hosts;
  std::istringstream lines(*text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const std::string place = file.string() + ":" + std::to_string(number) + ": ";
    Result<HostEntry> entry = parse_entry(words, line);
    if (!entry.ok()) return Status::invalid(place + entry.status().message());
    entry->line = number;
    const auto twin =
        std::find_if(hosts.begin(), hosts.end(), [&](const HostEntry& h) { return h.name == entry->name; });
    if (twin != hosts.end()) {
      return Status::invalid(place + "host " + entry->name + " is on line " + std::to_string(twin->line) +
                             " already: keep one line for each host");
    }
    hosts.push_back(std::move(entry).value());
  }
  if (hosts.empty()) return Status::invalid("hostfile " + file.string() + ": names no host: write lines NAME slots=N");
  return hosts;
}

Result<std::vector<NodeFilter>> parse_node_filters(std::string_view text, const std::string& option) {
  const Status malformed = Status::invalid(option + " '" + shown(std::string(text)) +
                                           "' names no nodes: write NODE[:SLOT,SLOT...][@NODE...], such as "
                                           "worker-0@worker-1:0,2");
  std::vector<NodeFilter> filters;
  for (const std::string& node : split(text, '@')) {
    const size_t colon = node.find(':');
    NodeFilter filter{node.substr(0, colon), {}};
    if (colon != std::string::npos) filter.slots = split(std::string_view(node).substr(colon + 1), ',');
    const bool hollow = std::any_of(filter.slots.begin(), filter.slots.end(), [](const auto& s) { return s.empty(); });
    if (filter.host.empty() || hollow || node.find_first_of(" \t") != std::string::npos) return malformed;
    filters.push_back(std::move(filter));
  }
  return filters;
}

bool is_this_machine(const std::string& host) {
  if (host == "localhost" || host == "127.0.0.1" || host == "::1") return true;
  const std::string own = own_name();
  const auto first_label = [](const std::string& name) { return name.substr(0, name.find('.')); };
  const bool one_is_short = own.find('.') == std::string::npos || host.find('.') == std::string::npos;
  return host == own || (one_is_short && !own.empty() && first_label(host) == first_label(own));
}

}  // namespace dsat::host
